//! Executors: where work runs. Threads, run loops, views of other executors, contexts with services, and the contract for an
//! executor of your own, which needs no `unsafe`.

#[doc(inline)]
pub use convoke_core::{Executor, ExecutorRef, InlineExecutor};
#[cfg(feature = "pool")]
#[doc(inline)]
pub use convoke_exec::pool::{
    HIGH_IN_A_ROW, OTHERS_EACH, PoolExecutor, Priority, ThreadPool, ThreadPoolBuilder,
};
#[doc(inline)]
pub use convoke_exec::{Limited, LoopFuture, LoopTurn, PIECES_PER_POLL, RunLoop, RunLoopExecutor, Strand};
#[cfg(feature = "pool")]
#[doc(inline)]
pub use convoke_task::PoolContext;
#[doc(inline)]
pub use convoke_task::blocking::{
    Blocking, BlockingPool, DEFAULT_BLOCKING_GRACE, DEFAULT_THREADS, Inside, Overdue, POOL, set_overdue_hook,
};
#[doc(inline)]
pub use convoke_task::context::{Context, ExecutionContext, FromContext, Service, ServiceError};
#[doc(inline)]
pub use convoke_task::{BlockOn, Reschedule, RunOn, block_on_with, reschedule, run_on};
