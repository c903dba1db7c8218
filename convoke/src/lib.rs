//! The facade: everything a program uses, under one name. The README is its front page, and its examples are tests.
#![doc = ""]
#![doc = include_str!("../../README.md")]

pub use convoke_core::{
    Completes, Env, Executor, ExecutorRef, InlineExecutor, Never, Operation, Outcome, OutcomeOf,
    OwnedStopCallback, Panic, Receiver, SameError, Sender, StopCallback, StopReason, StopRef, StopSource,
    StopToken, algorithm, env, outcome, stop,
};
pub use convoke_exec::{
    Context, CountingScope, PoolExecutor, RunLoop, RunLoopExecutor, ScopeHandle, Strand, ThreadPool,
    ThreadPoolBuilder, context, counting_scope, pool, strand, sync_wait, sync_wait_with,
};

pub mod prelude {
    //! What a program wants to have in scope: `use convoke::prelude::*;`.

    pub use convoke_core::prelude::*;
    pub use convoke_exec::{CountingScope, RunLoop, Strand, ThreadPool, sync_wait, sync_wait_with};
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
