//! Time: sleeping, intervals, the clock of the running task, the time of day, and limits: [`timeout()`], [`timeout_at()`], [`stop_after()`].

#[doc(inline)]
pub use convoke_exec::time::*;
#[cfg(feature = "net")]
#[doc(inline)]
pub use convoke_io::context::time_of_day;
#[doc(inline)]
pub use convoke_task::limits::{Elapsed, StopAfter, Timeout, stop_after, timeout, timeout_at};
