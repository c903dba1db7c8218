//! Why work is asked to stop.

use core::fmt;

/// Why a stop was requested. It travels with the request from a source to all that is linked below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// Somebody asked, and gave no other reason.
    Requested,
    /// The deadline has passed.
    Deadline,
    /// Work beside it failed, panicked or was stopped, so that its result is of no use any more.
    Sibling,
    /// Work beside it was faster.
    Lost,
    /// Whoever wanted the result has gone away.
    Abandoned,
    /// What it runs on is shutting down.
    Shutdown,
    /// The process received this signal.
    Signal(i32),
    /// A reason of the program's own.
    Named(&'static str),
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested => f.write_str("stop requested"),
            Self::Deadline => f.write_str("deadline passed"),
            Self::Sibling => f.write_str("work beside it ended early"),
            Self::Lost => f.write_str("work beside it was faster"),
            Self::Abandoned => f.write_str("nobody waits for it any more"),
            Self::Shutdown => f.write_str("shutting down"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}
