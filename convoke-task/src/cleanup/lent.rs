//! A resource that is lent to a body and comes back by itself.
//!
//! A body cannot borrow from the future that it is a part of, not without unsafe, and an `async` closure over a reference
//! has no `Send` future that generic code could name (Rust 1.95). So the resource itself goes into the body, in a handle
//! whose destructor puts it back: when the body's frame is gone, however that came about, the resource is here again.

use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use convoke_core::raw::sync::{Arc, Mutex};

/// A resource inside a body of [`using`](super::using) or [`cleanups`](super::cleanups). Used like the resource itself, and not to be kept for
/// longer than the body runs: who moves it away keeps the resource from being closed, which is reported.
pub struct Lent<R> {
    /// There until it is dropped.
    resource: Option<R>,
    back: Arc<Mutex<Option<R>>>,
}

/// The other end: where it comes back to.
pub(super) struct Lender<R>(Arc<Mutex<Option<R>>>);

pub(super) fn lend<R>(resource: R) -> (Lent<R>, Lender<R>) {
    let back = Arc::new(Mutex::new(None));
    (Lent { resource: Some(resource), back: back.clone() }, Lender(back))
}

impl<R> Lender<R> {
    /// The resource, if it came back.
    pub(super) fn take(&self) -> Option<R> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

const THERE: &str = "a lent resource is there until it is dropped";

impl<R> Deref for Lent<R> {
    type Target = R;

    #[inline]
    fn deref(&self) -> &R {
        self.resource.as_ref().expect(THERE)
    }
}

impl<R> DerefMut for Lent<R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut R {
        self.resource.as_mut().expect(THERE)
    }
}

impl<R> Drop for Lent<R> {
    fn drop(&mut self) {
        *self.back.lock().unwrap_or_else(PoisonError::into_inner) = self.resource.take();
    }
}

impl<R: fmt::Debug> fmt::Debug for Lent<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lent").field(&**self).finish()
    }
}
