//! Executors and timers: the run loop, the thread pool, views of other executors, and the clock.
//!
//! Work reaches an executor as a `Runnable`, through `Executor::post`, which any thread may call. The
//! executor then owes it exactly one call: `run`, or `stop` if it refuses the work or is dropped first. No
//! executor here allocates to queue work: it is linked through its own header.
//!
//! | module | contents |
//! | --- | --- |
//! | [`RunLoop`] | a queue, and the thread that runs it |
//! | [`pool`], [`ThreadPool`] | threads that share work |
//! | [`strand`], [`Strand`] | a view of an executor: runs work one at a time and in order |
//! | [`limited`], [`Limited`] | a view of an executor: runs at most `n` pieces of work at a time |
//! | [`time`] | timers: sleeping, intervals, the clock |
//! | `inbox` | the queue under run loop and strand |
//! | `view` | the code that strand and limited share |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod inbox;
pub mod limited;
#[cfg(feature = "pool")]
pub mod pool;
mod run_loop;
mod start_thread;
pub mod strand;
pub mod time;
mod view;

pub use limited::Limited;
#[cfg(feature = "pool")]
pub use pool::{PoolExecutor, Priority, ThreadPool, ThreadPoolBuilder};
pub use run_loop::{LoopFuture, LoopTurn, PIECES_PER_POLL, RunLoop, RunLoopExecutor};
pub use strand::Strand;

pub mod raw {
    //! For authors of executors: the parts that are model-checked on their own.

    #[doc(hidden)]
    pub use crate::limited::seats::{AfterQueuing, NextRun, Seat, Seats};
    #[cfg(feature = "pool")]
    #[doc(hidden)]
    pub use crate::pool::gate::{InsideGate, PoolGate};
    #[cfg(feature = "pool")]
    #[doc(hidden)]
    pub use crate::pool::injector::Injector;
    #[cfg(feature = "pool")]
    #[doc(hidden)]
    pub use crate::pool::priorities::{Priorities, PrioritySignals};
    #[cfg(feature = "pool")]
    #[doc(hidden)]
    pub use crate::pool::sleepers::{Searching, Sleepers};
    pub use crate::run_loop::{
        CALLS_PER_CHECK, EmbeddedLoop, LoopTimer, Moment, RUNS_PER_CHECK, Sleeper, count_call,
    };
    #[doc(hidden)]
    pub use crate::run_loop::{Runner, SharedLoop};
    pub use crate::run_loop::{TimerBy, TimerOfProcess};
    #[doc(hidden)]
    pub use crate::start_thread::start_thread;
    #[doc(hidden)]
    pub use crate::strand::turns::{AfterPost, NextBatch, Turns};
    #[doc(hidden)]
    pub use crate::time::When;
    #[doc(hidden)]
    pub use crate::time::alarm::Alarm;
    pub use crate::time::queue::{AfterArm, TimerQueue};
}
