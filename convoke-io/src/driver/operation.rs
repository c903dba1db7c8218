//! The memory of an I/O operation, shared by its owner and its driver. It is pinned inside its owner (a
//! transfer).

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::ptr::NonNull;
use std::io;

use convoke_core::Panic;
use convoke_core::raw::sync::UnsafeCell;

use super::life::{Life, LifeStage};
use super::{InFlight, OperationId, Request, Source, Submitted};

/// An I/O operation in memory.
///
/// 1. `request`, `result` and `call` belong to the owner while the operation is idle or finished, and to the
///    holder of its `InFlight` while it is submitted. `life` says which, and `life.rs` has the transitions:
///    stores release, loads acquire.
/// 2. `next` belongs to the holder of the `InFlight`; a `Parked` list holds the `InFlight`s of its members.
/// 3. A submitted operation has exactly one `InFlight`; an operation in any other stage has none.
/// 4. A submitted operation does not move and is not dropped: its owner is pinned and stays until the
///    operation is finished or released.
pub(crate) struct IoOperation {
    pub(super) request: UnsafeCell<Option<Request>>,
    pub(super) result: UnsafeCell<Option<io::Result<usize>>>,
    /// An address, not an `InFlight`: other list members point to this operation too.
    pub(super) next: Cell<Option<NonNull<IoOperation>>>,
    pub(super) call: UnsafeCell<Option<Call>>,
    pub(super) life: Life,
    _pinned: PhantomPinned,
}

/// The function that is called with the address of a finished operation.
pub(super) type Call = unsafe fn(NonNull<IoOperation>);

// SAFETY: rules 1 and 2: each cell has one user at a time, and the contents are `Send`.
unsafe impl Send for IoOperation {}
// SAFETY: rules 1 and 2: a shared reference gives access to a cell only to its one user.
unsafe impl Sync for IoOperation {}

impl IoOperation {
    /// Creates an idle operation.
    pub(crate) fn new() -> Self {
        Self {
            request: UnsafeCell::new(None),
            result: UnsafeCell::new(None),
            next: Cell::new(None),
            call: UnsafeCell::new(None),
            life: Life::new(),
            _pinned: PhantomPinned,
        }
    }

    /// Returns its stage.
    #[inline]
    pub(super) fn stage(&self) -> LifeStage {
        self.life.stage()
    }

    /// Submits a request. Returns the result if the source finishes it at once. Otherwise `call` is called
    /// once it is finished, with the address `this`.
    ///
    /// # Safety
    /// The operation is idle and its owner keeps rule 4. The buffers of the request stay in place as long as
    /// the operation is submitted. If this returns `None`, all of that holds until `call` was called or
    /// `take_back` returned true.
    pub(crate) unsafe fn submit(
        this: NonNull<Self>,
        source: &dyn Source,
        request: Request,
        call: Call,
    ) -> Option<io::Result<usize>> {
        let id = OperationId::of(this);
        // SAFETY: rule 1: the operation is idle: `start` of a transfer, the only caller, submits it once. So its
        // cells are the owner's. Rule 3: this is the only `InFlight`. Rule 4: an operation state is pinned
        // until its receiver is completed.
        let in_flight = unsafe {
            this.as_ref().request.with_mut(|slot| *slot = Some(request));
            this.as_ref().call.with_mut(|slot| *slot = Some(call));
            this.as_ref().life.submit();
            InFlight::new(this)
        };
        match Panic::catch(|| source.submit(in_flight)) {
            Ok(Submitted::Kept) => None,
            Ok(Submitted::Done(in_flight, result)) if in_flight.id() == id => {
                in_flight.release();
                Some(result)
            }
            // The driver returned another operation. That one ends here with an error. Ours is still in the
            // driver, and so is its buffer.
            Ok(Submitted::Done(..)) => None,
            // The unwinding dropped the operation, which finished it with an error; or the driver had stored
            // it before. The panic hook has reported the panic.
            Err(_) => None,
        }
    }

    /// Submits a request whose end is not reported, for tests of lists.
    ///
    /// # Safety
    /// The operation is idle, and its owner keeps rule 4 until the result is finished.
    #[cfg(all(test, not(feature = "loom")))]
    pub(super) unsafe fn begin(&self, request: Request) -> InFlight {
        // SAFETY: rule 1: the operation is idle, as the tests submit each once, so its cells are the owner's.
        // Rule 3: this is the only `InFlight`. Rule 4: the tests keep operations in a vector that does not grow.
        unsafe {
            self.request.with_mut(|slot| *slot = Some(request));
            self.life.submit();
            InFlight::new(NonNull::from(self))
        }
    }

    /// Takes the result if the operation is finished; it is idle afterwards.
    #[inline]
    pub(crate) fn take_result(&self) -> Option<io::Result<usize>> {
        (self.stage() == LifeStage::Finished).then(|| {
            self.life.take();
            // SAFETY: rule 1: the stage was `Finished`, so the cell belongs to the owner.
            let result = self.result.with_mut(|result| unsafe { (*result).take() });
            result.expect("a finished operation has a result")
        })
    }

    /// Cancels the operation at the source that it was submitted to. Returns true if nothing of it has
    /// happened: it is idle then. Otherwise it is finished, or will be. The caller keeps the operation and
    /// the source alive during the call, even if the operation is finished meanwhile.
    pub(crate) fn take_back(&self, source: &dyn Source) -> bool {
        let id = OperationId::of(NonNull::from(self));
        match source.cancel(id) {
            Some(in_flight) if in_flight.id() == id => {
                in_flight.release();
                true
            }
            // If the driver returned another operation, that one ends here with an error.
            _ => false,
        }
    }
}

impl Drop for IoOperation {
    #[inline]
    fn drop(&mut self) {
        // Rule 4 is broken: the driver would write into memory that is about to be freed.
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
