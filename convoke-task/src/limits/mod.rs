//! Limits on the time that a part of a task takes: [`timeout()`], [`timeout_at()`] and [`stop_after()`]. And
//! protection from stop requests: [`shield()`].
//!
//! Use [`timeout()`] or [`timeout_at()`] to get an error when the time is up, and [`stop_after()`] to stop the
//! task then.

mod grace;
mod limited;
mod shield;
mod stop_after;
mod timeout;

pub use grace::GracePeriod;
pub use shield::{Shield, shield};
pub use stop_after::{StopAfter, stop_after};
pub use timeout::{Elapsed, Timeout, timeout, timeout_at};
