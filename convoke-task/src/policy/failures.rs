//! The error that contains the failures of all children of a scope with a policy.

use core::fmt;

use crate::scope::ChildFailure;

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
