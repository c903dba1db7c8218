//! The second floor of Convoke: where work runs.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`sync_wait()`] | starts work and waits for its outcome on the calling thread |
//! | [`RunLoop`] | a queue and the thread that runs it |
//! | [`ThreadPool`] | threads that share work |
//! | [`Strand`] | one at a time, in order, over any executor |
//! | [`Context`] | typed services with ordered shutdown |
//! | [`time`] | work that waits for a time, or is asked to stop at one |
//! | [`tree()`] | which tasks there are, and what they wait for |
//! | [`CountingScope`] | counts the work that is started in it, and waits for its end |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

pub mod context;
pub mod counting_scope;
mod flow;
mod frame_arc;
mod inbox;
pub mod pool;
mod region;
mod report_panic;
mod run_loop;
pub mod scope;
mod spin_lock;
pub mod strand;
mod sync_wait;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;
pub mod tree;

pub use context::Context;
pub use counting_scope::{CountingScope, ScopeHandle};
pub use flow::{
    CatchStopped, Checkpoint, NotSend, Reschedule, RunOn, Stopped, StoppedForever, catch_stopped, checkpoint,
    current, reschedule, run_on, stopped,
};
pub use pool::{PoolExecutor, ThreadPool, ThreadPoolBuilder};
use report_panic::report_panic;
pub use run_loop::{RunLoop, RunLoopExecutor};
pub use scope::{Handle, Scope, scope};
pub use strand::Strand;
pub use sync_wait::{sync_wait, sync_wait_with};
pub use task::{Task, task};
pub use tree::tree;

pub mod raw {
    //! The low-level door: the parts of executors that are model-checked on their own.

    #[doc(hidden)]
    pub use crate::pool::injector::Injector;
    #[doc(hidden)]
    pub use crate::pool::sleepers::{Searching, Sleepers};
    pub use crate::region::Region;
    #[doc(hidden)]
    pub use crate::strand::turns::{AfterPost, Next, Turns};
    #[doc(hidden)]
    pub use crate::task::state as task_state;
    pub use crate::time::queue::{AfterArm, TimerQueue};
}
