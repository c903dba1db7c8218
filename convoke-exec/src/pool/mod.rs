//! The work-stealing thread pool.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `injector` | the queue from outside |
//! | `sleepers` | who sleeps, and how nobody sleeps over work |
//! | `worker` | one thread: where it looks for work |
//! | `shared` | the block that threads and handles share |
//! | `executor` | the handle |
//! | `thread_pool`, `builder` | the pool itself |
//!
//! The first two are model-checked; the others need crossbeam's deques, which loom does not know.

pub(crate) mod injector;
pub(crate) mod sleepers;

#[cfg(not(feature = "loom"))]
mod builder;
#[cfg(not(feature = "loom"))]
mod executor;
#[cfg(not(feature = "loom"))]
mod shared;
#[cfg(not(feature = "loom"))]
mod thread_pool;
#[cfg(not(feature = "loom"))]
mod worker;

#[cfg(not(feature = "loom"))]
pub use builder::ThreadPoolBuilder;
#[cfg(not(feature = "loom"))]
pub use executor::PoolExecutor;
#[cfg(not(feature = "loom"))]
pub use thread_pool::ThreadPool;
