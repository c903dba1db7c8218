//! Where work runs: the run loop, the thread pool, views of executors, and timers.
//!
//! | module | contents |
//! | --- | --- |
//! | [`RunLoop`] | a queue, and the thread that runs it |
//! | [`pool`], [`ThreadPool`] | threads that share work |
//! | [`strand`], [`Strand`] | runs work one at a time and in order, over any executor |
//! | [`limited`], [`Limited`] | runs at most `n` pieces of work at a time, over any executor |
//! | [`time`] | timers: sleeping, intervals, the clock |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

mod inbox;
pub mod limited;
pub mod pool;
mod run_loop;
mod running_here;
pub mod strand;
pub mod time;

pub use limited::Limited;
pub use pool::{PoolExecutor, Priority, ThreadPool, ThreadPoolBuilder};
pub use run_loop::{RunLoop, RunLoopExecutor};
pub use strand::Strand;

pub mod raw {
    //! For people who write executors: the parts that are model-checked on their own.

    #[doc(hidden)]
    pub use crate::limited::seats::{AfterQueuing, Seat, Seats, Turn};
    #[doc(hidden)]
    pub use crate::pool::gate::{Gate, Inside};
    #[doc(hidden)]
    pub use crate::pool::injector::Injector;
    #[doc(hidden)]
    pub use crate::pool::priorities::{Priorities, Signals};
    #[doc(hidden)]
    pub use crate::pool::sleepers::{Searching, Sleepers};
    pub use crate::run_loop::{LOOK_EACH, Moment, Sleeper, look_next};
    #[doc(hidden)]
    pub use crate::run_loop::{Runner, Shared};
    #[doc(hidden)]
    pub use crate::strand::turns::{AfterPost, Next, Turns};
    #[doc(hidden)]
    pub use crate::time::When;
    #[doc(hidden)]
    pub use crate::time::alarm::Alarm;
    pub use crate::time::queue::{AfterArm, TimerQueue};
}
