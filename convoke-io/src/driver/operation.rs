//! An I/O operation in memory: what its owner and its driver share, pinned in whatever waits for it.
//!
//! 1. `request`, `result` and `call` are the owner's while the operation is idle or finished, and belong to whoever holds its
//!    `InFlight` while it is submitted. `life.rs` says when that changes; its stores release, its loads acquire.
//! 2. `next` belongs to whoever holds the `InFlight`: a list of parked operations keeps it there.
//! 3. There is one `InFlight` for a submitted operation, and none for any other.
//! 4. An operation that is submitted stays where it is. Its owner sees to that: he is pinned, and does not go before it was
//!    finished or let go.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::ptr::{self, NonNull};
use std::io;

use convoke_core::Panic;
use convoke_core::raw::sync::UnsafeCell;

use super::life::{Life, LifeStage};
use super::{InFlight, OperationId, Request, Source, Submitted};

/// See the head of this file.
pub(crate) struct IoOperation {
    pub(super) request: UnsafeCell<Option<Request>>,
    pub(super) result: UnsafeCell<Option<io::Result<usize>>>,
    /// Plain, as pointers lead to it.
    pub(super) next: UnsafeCell<*mut IoOperation>,
    pub(super) call: UnsafeCell<Option<Call>>,
    pub(super) life: Life,
    _pinned: PhantomPinned,
}

/// What is called when an operation is finished, with its address.
pub(super) type Call = unsafe fn(NonNull<IoOperation>);

// SAFETY: rules 1 and 2: each cell has one user at a time, and what is in them is `Send`.
unsafe impl Send for IoOperation {}
// SAFETY: as above.
unsafe impl Sync for IoOperation {}

impl IoOperation {
    /// One that is not submitted.
    pub(crate) fn new() -> Self {
        Self {
            request: UnsafeCell::new(None),
            result: UnsafeCell::new(None),
            next: UnsafeCell::new(ptr::null_mut()),
            call: UnsafeCell::new(None),
            life: Life::new(),
            _pinned: PhantomPinned,
        }
    }

    /// Where it is in its life.
    #[inline]
    pub(super) fn stage(&self) -> LifeStage {
        self.life.stage()
    }

    /// Submits a request, of whose end `call` is told: it is given the address that is given here.
    ///
    /// # Safety
    /// Rule 4, and the buffers of the request stay where they are as long; until `call` was called, if this says nothing.
    pub(crate) unsafe fn submit(
        this: NonNull<Self>,
        source: &dyn Source,
        request: Request,
        call: Call,
    ) -> Option<io::Result<usize>> {
        let id = OperationId::of(this);
        // SAFETY: rule 1: it is idle, and ours.
        let in_flight = unsafe {
            this.as_ref().request.with_mut(|place| *place = Some(request));
            this.as_ref().call.with_mut(|place| *place = Some(call));
            this.as_ref().life.submit();
            InFlight::new(this)
        };
        match Panic::catch(|| source.submit(in_flight)) {
            Ok(Submitted::Kept) => None,
            Ok(Submitted::Done(in_flight, result)) if in_flight.id() == id => {
                in_flight.let_go();
                Some(result)
            }
            // The driver has mixed up two. The other one ends here, with an error; ours is still the driver's, and so is its
            // buffer, whatever it says.
            Ok(Submitted::Done(..)) => None,
            // It was dropped by the panic, and so is finished with an error; or the driver has put it somewhere before. What the
            // driver threw has been reported by the panic hook.
            Err(_) => None,
        }
    }

    /// Makes one that nobody is told of: for tests of lists.
    ///
    /// # Safety
    /// As [`submit`](Self::submit).
    #[cfg(all(test, not(feature = "loom")))]
    pub(super) unsafe fn begin(&self, request: Request) -> InFlight {
        // SAFETY: rule 1: it is idle, as the caller says.
        unsafe {
            self.request.with_mut(|place| *place = Some(request));
            self.life.submit();
            InFlight::new(NonNull::from(self))
        }
    }

    /// The result, if it is finished. It is idle then.
    #[inline]
    pub(crate) fn take_result(&self) -> Option<io::Result<usize>> {
        (self.stage() == LifeStage::Finished).then(|| {
            self.life.take();
            // SAFETY: rule 1: it was finished, and is ours.
            let result = self.result.with_mut(|result| unsafe { (*result).take() });
            result.expect("what is finished has a result")
        })
    }

    /// Takes it back from the source that it was submitted to. Says whether nothing of it has happened: it is idle then. If
    /// not, it is finished, or will be. Whoever calls this sees to it that it does not go meanwhile, also if it is finished.
    pub(crate) fn take_back(&self, source: &dyn Source) -> bool {
        let id = OperationId::of(NonNull::from(self));
        match source.cancel(id) {
            Some(in_flight) if in_flight.id() == id => {
                in_flight.let_go();
                true
            }
            // Another one, if any: that ends here, with an error.
            _ => false,
        }
    }
}

impl Drop for IoOperation {
    #[inline]
    fn drop(&mut self) {
        // Rule 4 is broken: the driver is about to write into memory that is somebody else's.
        if self.stage() == LifeStage::Submitted {
            std::process::abort();
        }
    }
}

impl fmt::Debug for IoOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoOperation").field("stage", &self.stage()).finish_non_exhaustive()
    }
}
