//! A value that waits in the queue of an executor, in memory of an operation.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{Call, Header, Runnable, WorkKind};

/// A value that an executor can resume.
pub trait Resume: Send {
    /// Continues; `call` tells whether the executor runs it or drops it.
    fn resume(self, call: Call);
}

/// The part of an operation that an executor queues, and the value that the queued unit of work carries.
///
/// 1. The value belongs to the owner until it makes a runnable, then to that runnable, which takes it when it
///    is run or dropped. There is one runnable at a time.
#[repr(C)]
pub struct Posted<B> {
    // First, so that a pointer to it is a pointer to all of this.
    header: Header,
    value: UnsafeCell<Option<B>>,
}

// SAFETY: rule 1 gives the value to one thread at a time; the header is made to be shared with executors.
unsafe impl<B: Send> Sync for Posted<B> {}

impl<B: Resume> Posted<B> {
    /// Creates one that is not queued and has no value yet.
    #[inline]
    pub fn new() -> Self {
        Self { header: Header::new(const { &WorkKind::new(Self::call) }), value: UnsafeCell::new(None) }
    }

    /// Creates one that is not queued and has its value already.
    #[inline]
    pub fn holding(value: B) -> Self {
        Self {
            header: Header::new(const { &WorkKind::new(Self::call) }),
            value: UnsafeCell::new(Some(value)),
        }
    }

    /// Returns a unit of work that resumes `value`.
    ///
    /// # Safety
    /// `this` does not move, and is alive until `value` is resumed. There is no other runnable of it (rule
    /// 1).
    #[inline]
    pub unsafe fn runnable(this: NonNull<Self>, value: B) -> Runnable {
        // SAFETY: rule 1: there is no runnable yet, so the value is the caller's. The contract of `queue` is
        // that of this function.
        unsafe {
            *this.as_ref().value.get() = Some(value);
            Self::queue(this)
        }
    }

    /// Returns a unit of work that resumes the value that is there.
    ///
    /// # Safety
    /// As for [`runnable`](Posted::runnable).
    #[inline]
    pub unsafe fn queue(this: NonNull<Self>) -> Runnable {
        // SAFETY: the header is the first field (`repr(C)`), and `call` takes the value once. By the contract
        // of this function it does not move, is alive until then, and has no other runnable.
        unsafe { Runnable::new(this.cast()) }
    }

    /// Resumes the value.
    ///
    /// # Safety
    /// Called once for each runnable, by it.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        // SAFETY: `runnable` made the pointer from one to the whole `Posted`, of which the header is the first
        // field (`repr(C)`), and which is alive until the value is resumed. Rule 1: the value is ours.
        let value = unsafe { (*header.cast::<Self>().as_ref().value.get()).take() };
        if let Some(value) = value {
            value.resume(call);
        }
    }
}

impl<B: Resume> Default for Posted<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B> fmt::Debug for Posted<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Posted").finish_non_exhaustive()
    }
}
