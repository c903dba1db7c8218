//! The guide.

pub mod coming_from_tokio;
