//! What a piece of work is called: for the messages of a scope that somebody has to understand.

use core::fmt;
use core::panic::Location;

/// The name that was given, or the place where the work was put into the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Given(&'static str),
    Place(&'static Location<'static>),
}

impl Name {
    /// The place of the caller.
    #[track_caller]
    pub(super) fn here() -> Self {
        Self::Place(Location::caller())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(name) => write!(f, "`{name}`"),
            Self::Place(place) => write!(f, "the work from {place}"),
        }
    }
}
