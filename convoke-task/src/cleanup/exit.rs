//! The end of a body, as its clean-up sees it.

use core::fmt;

use convoke_core::{BodyOutput, StopReason};

/// End of a body, as its clean-up sees it. A transaction commits if the exit [is clean](Exit::is_clean), and
/// rolls back otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// The body returned a value.
    Value,
    /// The body returned a [failure](BodyOutput): an `Err` or `None`, most often by `?`.
    Error,
    /// The body was stopped, with this reason if a stop was requested.
    Stopped(Option<StopReason>),
    /// The body panicked, with this message.
    Panicked(String),
}

impl Exit {
    /// Returns true if the body returned a value that is no failure.
    pub const fn is_clean(&self) -> bool {
        matches!(self, Self::Value)
    }

    /// Returns true if the body was stopped.
    pub const fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }

    /// Returns true if the body panicked.
    pub const fn is_panicked(&self) -> bool {
        matches!(self, Self::Panicked(_))
    }
}

impl BodyOutput for Exit {}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value => f.write_str("returned a value"),
            Self::Error => f.write_str("failed"),
            Self::Stopped(Some(reason)) => write!(f, "was stopped ({reason})"),
            Self::Stopped(None) => f.write_str("stopped by itself"),
            Self::Panicked(message) => write!(f, "panicked ({message})"),
        }
    }
}
