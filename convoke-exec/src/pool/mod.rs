//! The work-stealing thread pool.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `priority` | how urgent work is |
//! | `injector` | a queue that all threads share |
//! | `priorities` | one of them for each priority, and what a busy thread looks at |
//! | `sleepers` | who sleeps, and how nobody sleeps over work |
//! | `worker` | one thread: where it looks for work |
//! | `shared` | the block that threads share |
//! | `gate` | the way from a handle to the block, until the pool has ended |
//! | `entrance` | where work of a priority comes in |
//! | `executor` | the handle |
//! | `thread_pool`, `builder` | the pool itself |
//!
//! Queues, sleepers and the gate are model-checked; the others need crossbeam's deques, which loom does not know.

pub(crate) mod gate;
pub(crate) mod injector;
pub(crate) mod priorities;
pub(crate) mod sleepers;

mod builder;
mod entrance;
mod executor;
mod priority;
mod shared;
mod thread_pool;
mod worker;

pub use builder::ThreadPoolBuilder;
pub use executor::PoolExecutor;
pub use priority::{HIGH_IN_A_ROW, OTHERS_EACH, Priority};
pub use thread_pool::ThreadPool;
