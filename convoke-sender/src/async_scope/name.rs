//! The name of a piece of work, for the messages of a scope.

use core::fmt;
use core::panic::Location;

/// The name that was given, or the source location where the work was added to the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkName {
    /// A name that was given.
    Given(&'static str),
    /// The source location where the work was added.
    Location(&'static Location<'static>),
}

impl WorkName {
    /// Returns the source location of the caller.
    #[track_caller]
    pub fn here() -> Self {
        Self::Location(Location::caller())
    }
}

impl fmt::Display for WorkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(name) => write!(f, "`{name}`"),
            Self::Location(location) => write!(f, "the work added at {location}"),
        }
    }
}
