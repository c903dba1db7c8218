//! The facade: everything a program uses, under one name. The README is its front page, and its examples are tests.
#![doc = ""]
#![doc = include_str!("../../README.md")]

pub use convoke_core::{
    AwaitError, CleanupFailure, Env, Executor, ExecutorRef, FailsAs, FrameAllocator, InlineExecutor, Never,
    Outcome, OwnedStopCallback, Panic, StopCallback, StopReason, StopRef, StopSource, StopToken, env, frames,
    outcome, stop,
};
pub use convoke_exec::{
    Limited, PoolExecutor, Priority, RunLoop, RunLoopExecutor, Strand, ThreadPool, ThreadPoolBuilder,
    limited, pool, strand,
};
pub use convoke_inspect::{diagnose, diagnosis, tree};
#[cfg(feature = "sender")]
pub use convoke_sender::{
    Awaited, Completes, CountingScope, Operation, OutcomeOf, Receiver, SameError, ScopeHandle, Sender,
    algorithm, awaitable, counting_scope, sync_wait, sync_wait_with,
};
pub use convoke_task::{
    AsyncClose, BlockOn, BlockingHandle, BlockingPool, BlockingScope, Bound, CatchStopped, Checkpoint,
    Cleanups, Context, Elapsed, EndStopped, EndedEarly, Exit, Forever, Framed, Generator, Handle, Launch,
    Launched, Lent, LocalHandle, LocalScope, LocalScopeNotSend, NoReturn, NotSend, PolicyScope, Reschedule,
    RunOn, Scope, Stoppable, Stopped, Task, WithLocal, Yielder, block_on, block_on_with, blocking,
    blocking_scope, blocking_scope_with, catch_stopped, chance, checkpoint, cleanup, cleanups, concurrent,
    context, current, deadline, ensure, for_each_concurrent, forever, frame, frame_dyn, frame_dyn_local,
    generator, join, launch, limits, local_scope, local_scope_not_send, map_concurrent, policy, race,
    reschedule, run_on, schedule, scope, scope_on, scope_with, set_cleanup_hook, shield, stop_after,
    stoppable, stopped, task, timeout, together, try_frame, try_join, using, with_local,
};

/// Locks, permits, events and channels whose waits can be stopped.
#[doc(inline)]
pub use convoke_sync as sync;

pub mod time {
    //! Time: sleeping, intervals, the clock.

    pub use convoke_exec::time::*;
    #[cfg(feature = "sender")]
    pub use convoke_sender::{StopAt, stop_after, stop_at};
}

#[cfg(all(doc, feature = "net"))]
pub mod coming_from_tokio;

#[cfg(feature = "net")]
pub mod runtime;

#[cfg(feature = "net")]
pub use convoke_io::{IoContext, IoExecutor, Work};
#[cfg(feature = "net")]
pub use convoke_net::{net, signal, stream};
#[cfg(feature = "net")]
pub use runtime::{Runtime, io_context};

/// Simulations: a network of hosts in memory, with virtual time, a scheduler that follows a seed, and faults (feature `sim`).
#[cfg(feature = "sim")]
#[doc(inline)]
pub use convoke_sim as sim;

#[cfg(feature = "macros")]
pub use convoke_macros::{main, test};

#[cfg(feature = "net")]
pub mod io {
    //! I/O below sockets: contexts, and the contract of drivers.

    pub use convoke_io::context::{
        IO, IoContext, IoExecutor, IoShared, Work, current_driver, driver_of, services_of, use_service,
        with_services,
    };
    pub use convoke_io::{CALLS_IN_A_ROW, driver, transfer};
}

pub mod prelude {
    //! What a program wants to have in scope: `use convoke::prelude::*;`.

    pub use convoke_core::{
        Env, Executor, ExecutorRef, Never, Outcome, Panic, StopReason, StopSource, StopToken,
    };
    pub use convoke_exec::time::{sleep, sleep_until};
    pub use convoke_exec::{Limited, RunLoop, Strand, ThreadPool};
    #[cfg(feature = "sender")]
    pub use convoke_sender::prelude::*;
    #[cfg(feature = "sender")]
    pub use convoke_sender::{CountingScope, sync_wait, sync_wait_with};
    pub use convoke_task::{
        AsyncClose, BlockOn, Exit, Stopped, block_on, block_on_with, blocking, blocking_scope, catch_stopped,
        checkpoint, ensure, for_each_concurrent, forever, frame, generator, join, launch, local_scope,
        map_concurrent, race, reschedule, run_on, scope, scope_on, scope_with, shield, stoppable, stopped,
        task, timeout, try_join, using,
    };
}

pub mod raw {
    //! The low-level door: what executors, algorithms and task types are made of.

    pub use convoke_core::raw::*;
    pub use convoke_exec::raw::*;
    #[cfg(feature = "sender")]
    pub use convoke_sender::raw::*;
    pub use convoke_task::raw::*;
}

#[cfg(feature = "testing")]
pub mod testing {
    //! Tools to test with (feature `testing`): test bodies in virtual time, stops at every point, contract suites, and what senders
    //! and executors are tested by hand with.

    #[cfg(feature = "net")]
    pub use convoke_net::testing::*;
    pub use convoke_testing::*;
}
