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
    AsyncClose, BlockingHandle, BlockingPool, BlockingScope, Bound, CatchStopped, Checkpoint, Cleanups,
    Context, CountingScope, Elapsed, EndStopped, EndedEarly, Exit, Forever, Framed, Generator, Handle,
    Launch, Launched, Lent, Limited, LocalHandle, LocalScope, LocalScopeNotSend, NoReturn, NotSend,
    PolicyScope, PoolExecutor, Priority, Reschedule, RunLoop, RunLoopExecutor, RunOn, Scope, ScopeHandle,
    Stoppable, Stopped, Strand, Task, ThreadPool, ThreadPoolBuilder, WithLocal, Yielder, blocking,
    blocking_scope, blocking_scope_with, catch_stopped, chance, checkpoint, cleanup, cleanups, concurrent,
    context, counting_scope, current, deadline, diagnose, diagnosis, ensure, for_each_concurrent, forever,
    frame, frame_dyn, frame_dyn_local, generator, join, launch, limited, limits, local_scope,
    local_scope_not_send, map_concurrent, policy, pool, race, reschedule, run_on, schedule, scope, scope_on,
    scope_with, set_cleanup_hook, shield, stop_after, stoppable, stopped, strand, sync, sync_wait,
    sync_wait_with, task, time, timeout, together, tree, try_frame, try_join, using, with_local,
};

#[cfg(all(doc, feature = "net"))]
pub mod coming_from_tokio;

#[cfg(feature = "net")]
pub mod runtime;

#[cfg(feature = "net")]
pub use convoke_io::{IoContext, IoExecutor, Work, net, signal, stream};
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

    pub use convoke_core::prelude::*;
    pub use convoke_exec::time::{sleep, sleep_until};
    pub use convoke_exec::{
        AsyncClose, CountingScope, Exit, Limited, RunLoop, Stopped, Strand, ThreadPool, blocking,
        blocking_scope, catch_stopped, checkpoint, ensure, for_each_concurrent, forever, frame, generator,
        join, launch, local_scope, map_concurrent, race, reschedule, run_on, scope, scope_on, scope_with,
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
    //! Tools to test with (feature `testing`): test bodies in virtual time, stops at every point, contract suites, and what senders
    //! and executors are tested by hand with.

    pub use convoke_core::testing::*;
    pub use convoke_exec::testing::*;
    #[cfg(feature = "net")]
    pub use convoke_io::testing::*;
}
