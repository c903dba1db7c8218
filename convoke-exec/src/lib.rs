//! The second floor of Convoke: where work runs.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`launch()`] | the root of a chain, from ordinary code |
//! | [`blocking_scope()`] | children of blocking code, which borrow from it |
//! | [`frame()`] | a future in memory of the chain |
//! | [`sync_wait()`] | starts work and waits for its outcome on the calling thread |
//! | [`RunLoop`] | a queue and the thread that runs it |
//! | [`ThreadPool`] | threads that share work |
//! | [`Strand`] | one at a time, in order, over any executor |
//! | [`Limited`] | so many at a time, over any executor |
//! | [`Context`] | typed services with ordered shutdown |
//! | [`cleanup`] | clean-up that is awaited on every exit |
//! | [`time`] | work that waits for a time, or is asked to stop at one |
//! | [`task()`], [`mod@scope`], [`mod@local_scope`] | a future that is work; children beside it, or inside it |
//! | [`together`], [`limits`] | several futures at once in one task; deadlines and shields |
//! | [`concurrent`] | a function over many items, several at a time |
//! | [`mod@blocking`] | work that blocks, on threads of its own |
//! | [`policy`] | scopes in which something else than the first failure ends all |
//! | [`schedule`] | again after a while: retry, repeat |
//! | [`mod@generator`] | bodies that yield values, and clean up when nobody wants more |
//! | [`sync`] | locks, permits, events and channels whose waits can be stopped |
//! | [`tree()`] | which tasks there are, and what they wait for |
//! | [`diagnosis`] | who holds an executor, who waits for himself, who for each other |
//! | [`CountingScope`] | counts the work that is started in it, and waits for its end |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

pub mod blocking;
pub mod chance;
pub mod cleanup;
pub mod concurrent;
pub mod context;
pub mod counting_scope;
pub mod diagnosis;
mod flow;
mod frame_arc;
mod framed;
pub mod generator;
mod inbox;
pub mod launch;
pub mod limited;
pub mod limits;
pub mod local_scope;
mod pinned;
pub mod policy;
pub mod pool;
mod region;
mod report_panic;
mod run_loop;
mod running_here;
pub mod schedule;
pub mod scope;
mod spin_lock;
mod steps;
pub mod strand;
mod surroundings;
pub mod sync;
mod sync_wait;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;
pub mod together;
pub mod tree;
mod wake;

pub use blocking::{BlockingPool, blocking};
pub use cleanup::{AsyncClose, Cleanups, Exit, Lent, cleanups, ensure, set_cleanup_hook, using};
pub use concurrent::{for_each_concurrent, map_concurrent};
pub use context::Context;
pub use counting_scope::{CountingScope, ScopeHandle};
pub use diagnosis::diagnose;
pub use flow::{
    CatchStopped, Checkpoint, EndStopped, Forever, NoReturn, NotSend, Reschedule, RunOn, Stoppable, Stopped,
    WithLocal, catch_stopped, checkpoint, current, forever, reschedule, run_on, stoppable, stopped,
    with_local,
};
pub use framed::{Framed, frame, frame_dyn, frame_dyn_local, try_frame};
pub use generator::{Generator, Yielder, generator};
pub use launch::{Launch, Launched, launch};
pub use limited::Limited;
pub use limits::{Elapsed, deadline, shield, stop_after, timeout};
pub use local_scope::{LocalHandle, LocalScope, LocalScopeNotSend, local_scope, local_scope_not_send};
pub use policy::{PolicyScope, scope_with};
pub use pool::{PoolExecutor, Priority, ThreadPool, ThreadPoolBuilder};
use report_panic::report_panic;
pub use run_loop::{RunLoop, RunLoopExecutor};
pub use scope::{
    BlockingHandle, BlockingScope, Bound, EndedEarly, Handle, Scope, blocking_scope, blocking_scope_with,
    scope, scope_on,
};
pub use strand::Strand;
pub use sync_wait::{sync_wait, sync_wait_with};
pub use task::{Task, task};
pub use together::{join, race, try_join};
pub use tree::tree;

pub mod raw {
    //! The low-level door: the parts of executors that are model-checked on their own.

    #[doc(hidden)]
    pub use crate::flow::Returns;
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
    pub use crate::region::{BodyMark, Region};
    pub use crate::run_loop::{LOOK_EACH, Moment, Sleeper, look_next};
    #[doc(hidden)]
    pub use crate::spin_lock::{SpinGuard, SpinLock};
    #[doc(hidden)]
    pub use crate::strand::turns::{AfterPost, Next, Turns};
    #[doc(hidden)]
    pub use crate::task::state as task_state;
    pub use crate::task::wake_at_home;
    #[doc(hidden)]
    pub use crate::time::alarm::Alarm;
    pub use crate::time::queue::{AfterArm, TimerQueue};
    #[doc(hidden)]
    pub use crate::together::bells::{Bell, Bells, Key};
}
