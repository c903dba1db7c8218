//! The identity of the boxed operation around some work.

use core::ptr::NonNull;

/// The identity of a boxed operation. Work compares it to know whether it runs directly inside of that operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enclosing(NonNull<()>);

impl Enclosing {
    /// Creates the identity of the operation at this address.
    pub(crate) fn new<T>(operation: NonNull<T>) -> Self {
        Self(operation.cast())
    }
}
