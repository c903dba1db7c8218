//! The reason of a stop request.

use core::fmt;

/// The reason of a stop request. It travels with the request from a source to all sources below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// A stop was requested, and no other reason was given.
    Requested,
    /// The deadline has passed.
    Deadline,
    /// Sibling work failed, panicked or was stopped, so that the result is of no use any more.
    Sibling,
    /// Sibling work was faster.
    Lost,
    /// The result is not wanted any more: its future or handle was dropped.
    Abandoned,
    /// The executor or the program is shutting down.
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
            Self::Sibling => f.write_str("a sibling ended early"),
            Self::Lost => f.write_str("a sibling was faster"),
            Self::Abandoned => f.write_str("its result is not wanted any more"),
            Self::Shutdown => f.write_str("shutting down"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}
