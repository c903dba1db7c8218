//! Tools to put an executor through its paces.

mod runnable;

pub use runnable::runnable;
