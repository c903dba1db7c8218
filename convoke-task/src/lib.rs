//! Tasks: `async fn`s that run in scopes, stop in order, and have their clean-up awaited.
//!
//! A *task* is a future with an outcome: a value, stopped, or panicked. It runs on the executor of its environment
//! and belongs to a parent, which waits for it: a scope, a task that awaits it, or ordinary code that launched it.
//! A task that is asked to stop sees that at its next `await`, and ends after its children and its clean-up.
//!
//! | module | contents |
//! | --- | --- |
//! | [`task()`], [`mod@launch`] | a future that runs as a task; a root task, launched from ordinary code |
//! | [`mod@scope`], [`mod@local_scope`] | children beside a task, or inside it |
//! | [`cleanup`] | clean-up that is awaited on every exit |
//! | [`together`], [`limits`] | several futures at once in one task; deadlines and shields |
//! | [`concurrent`], [`mod@generator`] | a function over many items, several at a time; bodies that yield values |
//! | [`policy`], [`schedule`] | scopes with other rules than "the first failure ends it"; retry and repeat |
//! | [`mod@blocking`] | work that blocks, on threads of its own |
//! | [`context`] | typed services with ordered shutdown |
//! | [`hooks`] | code that is called when tasks are spawned, polled, asked to stop, and ended |
//! | [`chance`] | random numbers that a simulation can seed |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

#![cfg_attr(docsrs, feature(doc_cfg))]

// `task` is the machinery of one task, and its head states the protocol. `launch`, `scope` and `child_task` create
// tasks. The rest combines futures inside one task, mostly in a `region`: a part of a task with a stop of its own.

pub mod blocking;
pub mod chance;
mod child_env;
mod child_task;
pub mod cleanup;
pub mod concurrent;
pub mod context;
mod flow;
mod frame_queue;
mod framed;
pub mod generator;
pub mod hooks;
pub mod launch;
pub mod limits;
pub mod local_scope;
mod own_thread;
mod pinned;
pub mod policy;
#[cfg(feature = "pool")]
mod pool_context;
mod region;
mod registry;
mod reserve;
pub mod schedule;
pub mod scope;
mod solo_parent;
mod stop_callback;
mod stop_handle;
mod surroundings;
mod task;
mod task_waits;
pub mod together;

pub use blocking::{BlockingPool, blocking};
pub use child_task::{Task, TaskOperation, task};
pub use cleanup::{AsyncClose, Cleanups, Exit, Lent, cleanups, ensure, set_cleanup_hook, using};
pub use concurrent::{for_each_concurrent, map_concurrent};
pub use context::Context;
pub use flow::{
    CatchStopped, Checkpoint, EndStopped, Forever, InEnv, InOwnTask, InThisTask, NoReturn, NotSend,
    Reschedule, RunInEnv, RunOn, RunUntilStopped, Stoppable, Stopped, With, WithLocal, budget, catch_stopped,
    checkpoint, current, forever, reschedule, run_on, run_until_stopped, stoppable, stopped, with,
    with_local,
};
pub use framed::{Framed, frame, frame_dyn, frame_dyn_local, try_frame};
pub use generator::{Generator, Yielder, generator};
pub use launch::{BlockOn, Launch, Launched, block_on, block_on_with, launch};
pub use limits::{Elapsed, shield, stop_after, timeout, timeout_at};
pub use local_scope::{LocalHandle, LocalScope, LocalScopeNotSend, local_scope, local_scope_not_send};
pub use policy::{PolicyScope, scope_with};
#[cfg(feature = "pool")]
pub use pool_context::PoolContext;
pub use scope::{
    BlockingHandle, BlockingScope, BodyOutput, Bound, EndedEarly, Handle, Scope, blocking_scope,
    blocking_scope_with, scope, scope_on,
};
pub use stop_handle::StopHandle;
pub use together::{join, race, try_join};

pub mod raw {
    //! The low-level door, for authors of combinators: regions, and the parts that are model-checked on their own.

    #[doc(hidden)]
    pub use crate::cleanup::report_problem;
    #[doc(hidden)]
    pub use crate::flow::Returns;
    #[doc(hidden)]
    pub use crate::launch::{BoxedFuture, block_on_boxed};
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub use crate::region::explored;
    pub use crate::region::{BodyMark, Region};
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub use crate::registry::ask_stop;
    #[doc(hidden)]
    pub use crate::registry::{Found, Seen, visit_all};
    #[doc(hidden)]
    pub use crate::task::TaskView;
    #[doc(hidden)]
    pub use crate::task::state as task_state;
    #[cfg(not(feature = "loom"))]
    #[doc(hidden)]
    pub use crate::task::take_abandoned;
    pub use crate::task::wake_locally;
    #[doc(hidden)]
    pub use crate::together::wake_set::{Key, WakeFlag, WakeSet};
}
