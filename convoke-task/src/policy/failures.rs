//! The failure of a child of a scope with a policy, and the error that contains all of them.

use core::fmt;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::Panic;

/// ChildFailure of one child: its name, its spawn site, and its error or panic.
#[derive(Debug)]
pub struct ChildFailure<E> {
    pub(super) name: Option<Arc<str>>,
    pub(super) location: &'static Location<'static>,
    pub(super) attempt: u32,
    pub(super) kind: FailureKind<E>,
}

/// Error or panic of a child.
#[derive(Debug)]
pub enum FailureKind<E> {
    /// The error that the child returned.
    Error(E),
    /// The panic of the child.
    Panicked(Panic),
}

impl<E> ChildFailure<E> {
    /// Returns the child's name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the spawn site of the child.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// Returns the number of the attempt, counted from one. It is larger if the child was restarted.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the error or panic.
    pub fn kind(&self) -> &FailureKind<E> {
        &self.kind
    }

    /// Takes the error or panic.
    pub fn into_kind(self) -> FailureKind<E> {
        self.kind
    }
}

impl<E: fmt::Display> fmt::Display for ChildFailure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}`")?,
            None => write!(f, "the child started at {}", self.location)?,
        }
        if self.attempt > 1 {
            write!(f, ", attempt {}", self.attempt)?;
        }
        match &self.kind {
            FailureKind::Error(error) => write!(f, ": {error}"),
            FailureKind::Panicked(panic) => write!(f, ": {panic}"),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for ChildFailure<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            FailureKind::Error(error) => Some(error),
            FailureKind::Panicked(_) => None,
        }
    }
}

/// All failures of the children of a scope, in the order in which they ended. Empty, if too few children
/// succeeded although none failed.
#[derive(Debug)]
pub struct Failures<E> {
    all: Vec<ChildFailure<E>>,
}

impl<E> Failures<E> {
    pub(super) fn new(all: Vec<ChildFailure<E>>) -> Self {
        Self { all }
    }

    /// Returns the number of failures.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns true if no child failed: too few succeeded.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Iterates over the failures.
    pub fn iter(&self) -> core::slice::Iter<'_, ChildFailure<E>> {
        self.all.iter()
    }
}

impl<E> IntoIterator for Failures<E> {
    type Item = ChildFailure<E>;
    type IntoIter = std::vec::IntoIter<ChildFailure<E>>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter()
    }
}

impl<'a, E> IntoIterator for &'a Failures<E> {
    type Item = &'a ChildFailure<E>;
    type IntoIter = core::slice::Iter<'a, ChildFailure<E>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One line for each failure after a headline; or just the line of the failure, if there is one.
impl<E: fmt::Display> fmt::Display for Failures<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.all[..] {
            [] => f.write_str("too few children have succeeded, and none has failed"),
            [only] => write!(f, "{only}"),
            all => {
                write!(f, "{} children have failed:", all.len())?;
                all.iter().try_for_each(|failure| write!(f, "\n  {failure}"))
            }
        }
    }
}

/// The source is that of the first failure.
impl<E: core::error::Error + 'static> core::error::Error for Failures<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.all.first().and_then(core::error::Error::source)
    }
}
