//! How a child of a scope with a policy has failed; and an error that is all of them.

use core::fmt;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::Panic;

/// The failure of one child: whose it was, and what it was.
#[derive(Debug)]
pub struct Failure<E> {
    pub(super) name: Option<Arc<str>>,
    pub(super) location: &'static Location<'static>,
    pub(super) attempt: u32,
    pub(super) kind: FailureKind<E>,
}

/// What a child has failed with.
#[derive(Debug)]
pub enum FailureKind<E> {
    /// An error that it returned.
    Error(E),
    /// A panic.
    Panicked(Panic),
}

impl<E> Failure<E> {
    /// The child's name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Where it was started.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// Which attempt it was, counted from one: more, if the child was started again.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What it has failed with.
    pub fn kind(&self) -> &FailureKind<E> {
        &self.kind
    }

    /// The same, to have.
    pub fn into_kind(self) -> FailureKind<E> {
        self.kind
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
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

impl<E: core::error::Error + 'static> core::error::Error for Failure<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            FailureKind::Error(error) => Some(error),
            FailureKind::Panicked(_) => None,
        }
    }
}

/// All failures of a scope's children, in the order in which they came; none, if there were too few children to begin with.
#[derive(Debug)]
pub struct Failures<E> {
    all: Vec<Failure<E>>,
}

impl<E> Failures<E> {
    pub(super) fn new(all: Vec<Failure<E>>) -> Self {
        Self { all }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nobody has failed: there were merely not enough successes.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> core::slice::Iter<'_, Failure<E>> {
        self.all.iter()
    }
}

impl<E> IntoIterator for Failures<E> {
    type Item = Failure<E>;
    type IntoIter = std::vec::IntoIter<Failure<E>>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter()
    }
}

impl<'a, E> IntoIterator for &'a Failures<E> {
    type Item = &'a Failure<E>;
    type IntoIter = core::slice::Iter<'a, Failure<E>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One line for each; only one in all, if there is but one.
impl<E: fmt::Display> fmt::Display for Failures<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.all[..] {
            [] => f.write_str("not enough children have succeeded, and none has failed"),
            [only] => write!(f, "{only}"),
            all => {
                write!(f, "{} children have failed:", all.len())?;
                all.iter().try_for_each(|failure| write!(f, "\n  {failure}"))
            }
        }
    }
}

/// The source is the first of them.
impl<E: core::error::Error + 'static> core::error::Error for Failures<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.all.first().and_then(core::error::Error::source)
    }
}
