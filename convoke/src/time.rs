//! Time: sleeping, intervals, the clock of the running task, and limits: [`timeout()`], [`deadline()`], [`stop_after()`].

#[doc(inline)]
pub use convoke_exec::time::*;
#[doc(inline)]
pub use convoke_task::limits::{Elapsed, StopAfter, Timeout, deadline, stop_after, timeout};
