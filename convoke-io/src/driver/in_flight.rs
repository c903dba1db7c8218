//! An operation in the hands of its driver: an obligation, consumed by finishing it.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::Waker;
use std::io;

use convoke_core::Panic;

use super::operation::{Call, IoOperation};
use super::{Request, RequestMut};

/// An operation that was submitted. Whoever has it owns its buffers, and finishes it or hands it back.
///
/// Dropping it finishes it with an error, so that nobody waits for ever.
#[must_use = "dropping it finishes the operation with an error"]
pub struct InFlight {
    operation: NonNull<IoOperation>,
}

/// Which operation: an address, for looking it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(usize);

/// Something was finished, and somebody waits to be told. He is told when this is dropped, which is done without a lock
/// held: the program's code may run there.
#[must_use = "whoever waits is told when this is dropped; drop it without a lock held"]
pub struct Finished(Tell);

enum Tell {
    Nobody,
    Waker(Waker),
    Call(NonNull<IoOperation>, Call),
}

// SAFETY: rule 1 of the operation: what it leads to is ours, and `Send`.
unsafe impl Send for InFlight {}
// SAFETY: by shared reference the request can be read, and it is `Sync`.
unsafe impl Sync for InFlight {}
// SAFETY: a waker may go anywhere, and so may the call: whoever submitted promised that.
unsafe impl Send for Finished {}

impl OperationId {
    pub(super) fn of(operation: NonNull<IoOperation>) -> Self {
        Self(operation.addr().get())
    }

    /// As a number, to be found again by.
    pub fn number(self) -> usize {
        self.0
    }
}

impl InFlight {
    /// # Safety
    /// Rules 3 and 4 of the operation.
    pub(super) unsafe fn new(operation: NonNull<IoOperation>) -> Self {
        Self { operation }
    }

    /// Which operation it is.
    #[inline]
    pub fn id(&self) -> OperationId {
        OperationId::of(self.operation)
    }

    /// What is asked for.
    #[inline]
    pub fn request(&self) -> &Request {
        // SAFETY: rule 1: it is ours.
        let request = unsafe { self.operation.as_ref().request.with(|request| &*request) };
        request.as_ref().expect("what is submitted has a request")
    }

    /// What is asked for, with its buffers: they are the driver's until the operation is finished, and cannot be kept longer.
    ///
    /// ```compile_fail,E0505
    /// use convoke::driver::{InFlight, RequestMut};
    ///
    /// fn writes_too_late(mut operation: InFlight) {
    ///     if let RequestMut::Read(buffer) = operation.request_mut() {
    ///         drop(operation.finish(Ok(buffer.len())));
    ///         buffer[0] = 1;
    ///     }
    /// }
    /// ```
    #[inline]
    pub fn request_mut(&mut self) -> RequestMut<'_> {
        // SAFETY: rule 1: it is ours.
        let request = unsafe { self.operation.as_ref().request.with_mut(|request| &mut *request) };
        request.as_mut().expect("what is submitted has a request").as_mut()
    }

    /// It is finished, with this result. From now on its buffers belong to whoever submitted it. Done under the lock that
    /// [`cancel`](super::Source::cancel) takes, if there is one; what is returned is dropped without it.
    pub fn finish(self, result: io::Result<usize>) -> Finished {
        let operation = ManuallyDrop::new(self).operation;
        // SAFETY: rule 1: it is ours until `finish`, and rule 4: it is there until it was called.
        unsafe {
            let this = operation.as_ref();
            this.request.with_mut(|request| *request = None);
            this.result.with_mut(|place| *place = Some(result));
            let call = this.call.with(|call| *call);
            this.life.finish();
            Finished(call.map_or(Tell::Nobody, |call| Tell::Call(operation, call)))
        }
    }

    /// Nothing of it has happened, and its owner has it again.
    pub(super) fn let_go(self) {
        let operation = ManuallyDrop::new(self).operation;
        // SAFETY: as in `finish`.
        unsafe {
            let this = operation.as_ref();
            this.request.with_mut(|request| *request = None);
            this.life.let_go();
        }
    }

    /// Gives up the obligation for its address, to be put into a list.
    pub(super) fn into_raw(self) -> NonNull<IoOperation> {
        ManuallyDrop::new(self).operation
    }
}

impl Finished {
    /// Somebody waits until an attempt may succeed, and it may: for drivers, which tell all at once.
    #[inline]
    pub fn waking(waker: Waker) -> Self {
        Self(Tell::Waker(waker))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let lost = io::Error::other("the driver has dropped this operation");
        // SAFETY: the obligation is given up here.
        drop(unsafe { Self::new(self.operation) }.finish(Err(lost)));
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        match core::mem::replace(&mut self.0, Tell::Nobody) {
            Tell::Nobody => {}
            // It may be anybody's waker, and others wait to be told.
            Tell::Waker(waker) => drop(Panic::catch(|| waker.wake())),
            // SAFETY: whoever submitted it promised that it is there until the call, which comes once. A waker is the last that
            // such a call touches, and it may be anybody's too.
            Tell::Call(operation, call) => drop(Panic::catch(|| unsafe { call(operation) })),
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(self.request()).finish()
    }
}

impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finished")
    }
}
