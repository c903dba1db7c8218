//! Tools to put an executor through its paces.

pub mod executor_contract;
mod latch;
mod runnable;

pub use latch::Latch;
pub use runnable::runnable;
