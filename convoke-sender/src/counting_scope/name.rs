//! The name of a piece of work, for the messages of a scope.

use core::fmt;
use core::panic::Location;

/// The name that was given, or the source location where the work was added to the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Given(&'static str),
    Location(&'static Location<'static>),
}

impl Name {
    /// Returns the source location of the caller.
    #[track_caller]
    pub(super) fn here() -> Self {
        Self::Location(Location::caller())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(name) => write!(f, "`{name}`"),
            Self::Location(location) => write!(f, "the work added at {location}"),
        }
    }
}
