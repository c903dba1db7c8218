//! Structured async for Rust.

pub use convoke_core::*;
