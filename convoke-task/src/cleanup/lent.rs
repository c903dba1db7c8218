//! A resource that is lent to a body, and returned by a destructor.
//!
//! A body cannot borrow from the future that it is a part of without unsafe code, and generic code cannot say
//! that the future of an `async` closure over a reference is `Send` (Rust 1.95). So the resource is moved
//! into the body, in a `Lent`, whose destructor puts it back. When the body's frame was dropped, for whatever
//! reason, the resource is back.

use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use convoke_core::raw::FrameArc;
use convoke_core::raw::sync::Mutex;

/// Resource that is lent to a body of [`using`](super::using) or [`cleanups`](super::cleanups). It
/// dereferences to the resource. It must not be moved out of the body: then the resource is not closed, which
/// is reported.
pub struct Lent<R> {
    /// `Some` until it is dropped.
    resource: Option<R>,
    back: FrameArc<Mutex<Option<R>>>,
}

/// The other end, which takes the resource back.
pub(super) struct Lender<R>(FrameArc<Mutex<Option<R>>>);

/// Lends a resource.
pub(super) fn lend<R>(resource: R) -> (Lent<R>, Lender<R>) {
    let back = FrameArc::in_task(Mutex::new(None));
    (Lent { resource: Some(resource), back: back.clone() }, Lender(back))
}

impl<R> Lender<R> {
    /// Takes the resource, if it was returned.
    pub(super) fn take(&self) -> Option<R> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

const THERE: &str = "`Lent` has its resource until it is dropped";

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
