//! By which door a body left: what a clean-up is told.

use core::fmt;

use convoke_core::{BodyOutput, StopReason};

/// How the body ended that a clean-up runs after. A transaction commits if it [is clean](Exit::is_clean), and rolls back
/// otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// It returned a value.
    Value,
    /// It returned a [failure](BodyOutput): an `Err` or `None`, most often by `?`.
    Error,
    /// It was stopped, for this reason if a stop was asked for.
    Stopped(Option<StopReason>),
    /// It panicked, and said this.
    Panicked(String),
}

impl Exit {
    /// Whether it returned a value.
    pub const fn is_clean(&self) -> bool {
        matches!(self, Self::Value)
    }

    /// Whether it was stopped.
    pub const fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }

    /// Whether it panicked.
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
