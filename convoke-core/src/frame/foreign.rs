//! Futures of other crates and a stop: they do not hear of it, so a policy says what becomes of them.

use crate::env::Local;

/// Treatment of a future of another crate, such as a timer or a request of a tokio library, that waits when a
/// stop is requested. It knows nothing of stops.
///
/// The policy is the value of the key [`FOREIGN_FUTURES`] in the environment. It is inherited.
///
/// - Clean-up around such a future runs in order in both cases: `using` closes, scopes wait for children.
/// - A `shield` keeps the future in both cases.
/// - A future of Convoke decides itself, in both cases: it ends as stopped where it waits, or goes on until
///   its clean-up has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignFutures {
    /// The future is dropped where it waits, and the function that awaits it ends as stopped. So a `timeout`
    /// around it ends in time. The default: it is what futures of other crates are made for, and what their
    /// users know.
    #[default]
    GiveWay,
    /// The future runs to its end, unless `stoppable` is around it. For futures that must not be dropped
    /// between two steps.
    RunToEnd,
}

/// The key of the policy for futures of other crates that wait when a stop is requested.
pub static FOREIGN_FUTURES: Local<ForeignFutures> = Local::inherited("futures of other crates at a stop");
