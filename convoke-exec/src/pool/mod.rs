//! The work-stealing thread pool.
//!
//! A post from the pool's own work goes to the deque of its worker; any other post goes through a *port* into
//! an injector queue that all workers share. Both then notify the *sleepers*, which wake a worker if none
//! searches. A worker runs its deque, then the injectors, then steals; if it finds nothing it searches for a
//! few microseconds and sleeps. Workers, the pool and posts in progress keep the *shared* block alive; an
//! executor reaches it through the *gate* of a small part that is never freed.
//!
//! | module | contents |
//! | --- | --- |
//! | `priority` | the priorities of work |
//! | `injector` | a queue that all workers share |
//! | `priorities` | one injector for each priority, and the signals that a busy worker checks |
//! | `sleepers` | which workers sleep, and the protocol that wakes them |
//! | `worker` | one thread: where it takes work from |
//! | `shared` | the block that all threads share |
//! | `gate` | access to the block until the pool is dropped |
//! | `port` | the leaked part of a pool, which executors point to |
//! | `executor` | the public executor |
//! | `thread_pool`, `builder` | the pool itself |
//!
//! Queues, sleepers and gate are model-checked. The rest needs crossbeam's deques, which loom cannot model.

pub(crate) mod gate;
pub(crate) mod injector;
pub(crate) mod priorities;
pub(crate) mod sleepers;

mod builder;
mod executor;
mod port;
mod priority;
mod shared;
mod thread_pool;
mod worker;

pub use builder::ThreadPoolBuilder;
pub use executor::PoolExecutor;
pub use priority::{HIGH_IN_A_ROW, OTHERS_EACH, Priority};
pub use thread_pool::ThreadPool;
