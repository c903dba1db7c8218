//! `InFlight`: a submitted operation in the hands of its driver. It is an obligation, which `finish`
//! consumes.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::Waker;
use std::io;

use convoke_core::Panic;

use super::operation::{Call, IoOperation};
use super::{Request, RequestMut};

/// A submitted operation. Its holder owns the buffers, and finishes it or returns it.
///
/// Dropping it finishes it with an error, so that its owner does not wait for ever.
#[must_use = "dropping it finishes the operation with an error"]
pub struct InFlight {
    operation: NonNull<IoOperation>,
}

/// The identity of an operation, for look-up: its address, which is compared and never dereferenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(usize);

/// A notification that is still to be delivered: dropping it calls the waker or the operation's owner. Drop
/// it with no lock held: code of the program may run.
#[must_use = "dropping it notifies the waiter; drop it with no lock held"]
pub struct Finished(Notification);

enum Notification {
    None,
    Waker(Waker),
    Call(NonNull<IoOperation>, Call),
}

// SAFETY: rule 1 of `IoOperation`: the cells belong to the holder of the `InFlight`, and their contents are
// `Send`.
unsafe impl Send for InFlight {}
// SAFETY: a shared reference gives only `&Request`, and `Request` is `Sync`.
unsafe impl Sync for InFlight {}
// SAFETY: `Waker` is `Send`; the function of a transfer may be called on any thread.
unsafe impl Send for Finished {}

impl OperationId {
    pub(super) fn of(operation: NonNull<IoOperation>) -> Self {
        Self(operation.addr().get())
    }

    /// Returns it as a number, for example as the user data of a kernel request.
    pub fn number(self) -> usize {
        self.0
    }
}

impl InFlight {
    /// Creates the handle of a submitted operation.
    ///
    /// # Safety
    /// The operation is submitted and has no other `InFlight` (rule 3 of `IoOperation`), and its owner keeps
    /// rule 4.
    pub(super) unsafe fn new(operation: NonNull<IoOperation>) -> Self {
        Self { operation }
    }

    /// Returns the identity of the operation.
    #[inline]
    pub fn id(&self) -> OperationId {
        OperationId::of(self.operation)
    }

    /// Returns the request.
    #[inline]
    pub fn request(&self) -> &Request {
        // SAFETY: rule 1 of `IoOperation`: the request belongs to the holder of the `InFlight`, which is
        // `self`.
        let request = unsafe { self.operation.as_ref().request.with(|request| &*request) };
        request.as_ref().expect("a submitted operation has a request")
    }

    /// Returns the request with its buffers. They belong to the driver until the operation is finished; the
    /// borrow cannot outlive that.
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
        // SAFETY: rule 1 of `IoOperation`: the request belongs to the holder of the `InFlight`, which is
        // borrowed mutably.
        let request = unsafe { self.operation.as_ref().request.with_mut(|request| &mut *request) };
        request.as_mut().expect("a submitted operation has a request").as_mut()
    }

    /// Finishes the operation with this result. From now on its buffers belong to its owner. Call it under
    /// the lock that [`cancel`](super::Source::cancel) takes, if there is one, and drop the returned value
    /// without that lock.
    pub fn finish(self, result: io::Result<usize>) -> Finished {
        let operation = ManuallyDrop::new(self).operation;
        // SAFETY: rule 1 of `IoOperation`: the cells belong to `self` until `life.finish`. Rule 4: the
        // operation is alive until then, and nothing of it is touched afterwards.
        unsafe {
            let this = operation.as_ref();
            this.request.with_mut(|request| *request = None);
            this.result.with_mut(|slot| *slot = Some(result));
            let call = this.call.with(|call| *call);
            this.life.finish();
            Finished(call.map_or(Notification::None, |call| Notification::Call(operation, call)))
        }
    }

    /// Releases the operation to its owner: nothing of it has happened.
    pub(super) fn release(self) {
        let operation = ManuallyDrop::new(self).operation;
        // SAFETY: rule 1 of `IoOperation`: the cells belong to `self` until `life.release`. Rule 4: the
        // operation is alive until then, and nothing of it is touched afterwards.
        unsafe {
            let this = operation.as_ref();
            this.request.with_mut(|request| *request = None);
            this.life.release();
        }
    }

    /// Turns the handle into the operation's address, to be put into a list. The list takes over the
    /// obligation.
    pub(super) fn into_raw(self) -> NonNull<IoOperation> {
        ManuallyDrop::new(self).operation
    }
}

impl Finished {
    /// Creates a notification for a watcher, so that a driver can deliver all its notifications together.
    #[inline]
    pub fn waking(waker: Waker) -> Self {
        Self(Notification::Waker(waker))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let lost = io::Error::other("the driver has dropped this operation");
        // SAFETY: `self` is the only `InFlight` (rule 3 of `IoOperation`), and it is not used after this.
        drop(unsafe { Self::new(self.operation) }.finish(Err(lost)));
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        match core::mem::replace(&mut self.0, Notification::None) {
            Notification::None => {}
            // The waker may be foreign code. If it panics the other notifications are still delivered.
            Notification::Waker(waker) => drop(Panic::catch(|| waker.wake())),
            // SAFETY: the transfer that has submitted the operation keeps it until this call, and there is one
            // call: `finish` consumed the only `InFlight`. A foreign waker that panics is
            // the last thing that such a call touches.
            Notification::Call(operation, call) => drop(Panic::catch(|| unsafe { call(operation) })),
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
