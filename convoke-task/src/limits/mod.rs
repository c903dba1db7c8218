//! Limits to how far a part of a task runs, and to how far a stop reaches into it: [`timeout()`], [`deadline()`],
//! [`stop_after()`], [`shield()`].

mod grace;
mod limited;
mod shield;
mod stop_after;
mod timeout;

pub use grace::GracePeriod;
pub use shield::{Shield, shield};
pub use stop_after::{StopAfter, stop_after};
pub use timeout::{Elapsed, Timeout, deadline, timeout};
