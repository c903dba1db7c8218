//! The facade: everything a program uses, under one name. The README is its front page, and its examples are tests.
#![doc = ""]
#![doc = include_str!("../../README.md")]

pub use convoke_core::{
    AwaitError, Awaited, Completes, Env, Executor, ExecutorRef, FailsAs, InlineExecutor, Never, Operation, Outcome, OutcomeOf,
    OwnedStopCallback, Panic, Receiver, SameError, Sender, StopCallback, StopReason, StopRef, StopSource,
    StopToken, algorithm, awaitable, env, outcome, stop,
};
pub use convoke_exec::{
    AsyncClose, Cleanups, Exit, Lent, cleanup, cleanups, ensure, set_cleanup_hook, using,
    CatchStopped, Checkpoint, NotSend, Reschedule, RunOn, Stopped, StoppedForever, catch_stopped, checkpoint, current, reschedule, run_on, stopped,
    Context, PoolExecutor, RunLoop, RunLoopExecutor, Strand, Task, ThreadPool, ThreadPoolBuilder, context, pool,
    strand, sync_wait, sync_wait_with, task,
};

pub mod prelude {
    //! What a program wants to have in scope: `use convoke::prelude::*;`.

    pub use convoke_core::prelude::*;
    pub use convoke_exec::{
        AsyncClose, Exit, RunLoop, Stopped, Strand, ThreadPool, catch_stopped, checkpoint, ensure, reschedule, run_on, stopped, sync_wait,
        sync_wait_with, task, using,
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
