//! The failure of a child: its name, its spawn site, and its error or panic.

use core::fmt;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::Panic;

/// Failure of one child: its name, its spawn site, and its error or panic.
#[derive(Debug)]
pub struct ChildFailure<E> {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) location: &'static Location<'static>,
    pub(crate) attempt: u32,
    pub(crate) kind: FailureKind<E>,
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

/// Name and spawn site of a child, for its failures.
#[derive(Clone)]
pub(crate) struct ChildOrigin {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) location: &'static Location<'static>,
}

impl ChildOrigin {
    /// Creates the failure of an attempt of this child.
    pub(crate) fn failure<E>(&self, attempt: u32, kind: FailureKind<E>) -> ChildFailure<E> {
        ChildFailure { name: self.name.clone(), location: self.location, attempt, kind }
    }
}
