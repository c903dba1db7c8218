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

mod builder;
mod executor;
mod shared;
mod thread_pool;
mod worker;

pub use builder::ThreadPoolBuilder;
pub use executor::PoolExecutor;
pub use thread_pool::ThreadPool;
