//! Tools to put an executor through its paces.

#[cfg(feature = "testing")]
pub mod executor_contract;
#[cfg(feature = "testing")]
mod latch;
mod runnable;

#[cfg(feature = "testing")]
pub use latch::Latch;
pub use runnable::runnable;
