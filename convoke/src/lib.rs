//! The facade: everything a program uses, under one name. The README is its front page, and its examples are tests.
#![doc = ""]
#![doc = include_str!("../../README.md")]

pub use convoke_core::{
    AwaitError, Awaited, Completes, Env, Executor, ExecutorRef, FrameAllocator, InlineExecutor, Never,
    Operation, Outcome, OutcomeOf, OwnedStopCallback, Panic, Receiver, SameError, Sender, StopCallback,
    StopReason, StopRef, StopSource, StopToken, algorithm, awaitable, env, frames, outcome, stop,
};
pub use convoke_exec::{
    CatchStopped, Checkpoint, Context, CountingScope, Handle, NotSend, PoolExecutor, Reschedule, RunLoop,
    RunLoopExecutor, RunOn, Scope, ScopeHandle, Stopped, StoppedForever, Strand, Task, ThreadPool,
    ThreadPoolBuilder, catch_stopped, checkpoint, context, counting_scope, current, pool, reschedule, run_on,
    scope, stopped, strand, sync_wait, sync_wait_with, task, time, tree,
};

pub mod prelude {
    //! What a program wants to have in scope: `use convoke::prelude::*;`.

    pub use convoke_core::prelude::*;
    pub use convoke_exec::time::{sleep, sleep_until};
    pub use convoke_exec::{
        CountingScope, RunLoop, Stopped, Strand, ThreadPool, catch_stopped, checkpoint, reschedule, run_on,
        scope, stopped, sync_wait, sync_wait_with, task,
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
