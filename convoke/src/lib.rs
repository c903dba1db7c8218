//! The facade: everything a program uses, under one name. The README is its front page, and its examples are tests.
#![doc = ""]
#![doc = include_str!("../../README.md")]

pub use convoke_core::{
    AwaitError, Awaited, CleanupFailure, Completes, Env, Executor, ExecutorRef, FailsAs, FrameAllocator,
    InlineExecutor, Never, Operation, Outcome, OutcomeOf, OwnedStopCallback, Panic, Receiver, SameError,
    Sender, StopCallback, StopReason, StopRef, StopSource, StopToken, algorithm, awaitable, env, frames,
    outcome, stop,
};
pub use convoke_exec::{
    AsyncClose, BlockingHandle, BlockingScope, CatchStopped, Checkpoint, Cleanups, Context, CountingScope,
    Elapsed, EndStopped, Exit, Forever, Framed, Handle, Launch, Launched, Lent, LocalHandle, LocalScope,
    LocalScopeNotSend, NoReturn, NotSend, PoolExecutor, Reschedule, RunLoop, RunLoopExecutor, RunOn, Scope,
    ScopeHandle, Stoppable, Stopped, Strand, Task, ThreadPool, ThreadPoolBuilder, WithLocal, blocking_scope,
    blocking_scope_with, catch_stopped, checkpoint, cleanup, cleanups, context, counting_scope, current,
    ensure, forever, frame, frame_dyn, frame_dyn_local, join, launch, limits, local_scope,
    local_scope_not_send, pool, race, reschedule, run_on, scope, set_cleanup_hook, shield, stoppable,
    stopped, strand, sync, sync_wait, sync_wait_with, task, time, timeout, together, tree, try_frame,
    try_join, using, with_local,
};

pub mod prelude {
    //! What a program wants to have in scope: `use convoke::prelude::*;`.

    pub use convoke_core::prelude::*;
    pub use convoke_exec::time::{sleep, sleep_until};
    pub use convoke_exec::{
        AsyncClose, CountingScope, Exit, RunLoop, Stopped, Strand, ThreadPool, blocking_scope, catch_stopped,
        checkpoint, ensure, forever, frame, join, launch, local_scope, race, reschedule, run_on, scope,
        shield, stoppable, stopped, sync_wait, sync_wait_with, task, timeout, try_join, using,
    };
}

pub mod raw {
    //! The low-level door: what executors, algorithms and task types are made of.

    pub use convoke_core::raw::*;
    pub use convoke_exec::raw::*;
}

#[cfg(feature = "testing")]
pub mod testing {
    //! Tools to test senders and executors with (feature `testing`).

    pub use convoke_core::testing::*;
    pub use convoke_exec::testing::*;
}
