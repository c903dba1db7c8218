//! Tools to put an executor through its paces, and to test work that waits.

mod clockwork;
pub mod executor_contract;
mod latch;
mod runnable;

pub use clockwork::Clockwork;
pub use latch::Latch;
pub use runnable::runnable;
