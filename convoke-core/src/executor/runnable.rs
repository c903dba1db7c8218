//! The unit an executor queues: one pointer to a header that lies inside the work itself.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

/// What a queued piece of work is asked to do when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Run.
    Run,
    /// Complete as stopped: the executor will not run it.
    Stop,
}

/// The part of the work that queues know: a link and one function. Work that can be queued holds one, pinned.
///
/// The link belongs to whoever holds the [`Runnable`]: there is one for a header at a time.
pub struct Header {
    pub(super) next: *mut Header,
    call: unsafe fn(NonNull<Header>, Call),
}

// SAFETY: the link is touched by the holder of the one `Runnable` alone, the function pointer is never changed.
unsafe impl Send for Header {}
// SAFETY: as above.
unsafe impl Sync for Header {}

impl Header {
    /// A header for work that `call` runs or stops. `call` is given the pointer that [`Runnable::new`] was given.
    #[inline]
    pub const fn new(call: unsafe fn(NonNull<Header>, Call)) -> Self {
        Self { next: ptr::null_mut(), call }
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").finish_non_exhaustive()
    }
}

/// A piece of work, ready to run. Queuing it allocates nothing; it is a pointer.
///
/// Dropping it unrun completes its work as `Stopped`, so that nothing is ever lost in a queue.
#[must_use = "dropping a runnable completes its work as stopped"]
pub struct Runnable {
    header: NonNull<Header>,
}

// SAFETY: whoever made it promised in `Runnable::new` that its work may be run and stopped on any thread.
unsafe impl Send for Runnable {}
// SAFETY: a shared `&Runnable` gives access to nothing.
unsafe impl Sync for Runnable {}

impl Runnable {
    /// The runnable of the work that `header` lies in.
    ///
    /// # Safety
    /// The header stays where it is until its function has been called, which may happen on any thread; there is
    /// no other `Runnable` for it until then.
    #[inline]
    pub unsafe fn new(header: NonNull<Header>) -> Self {
        Self { header }
    }

    /// Runs the work, here.
    #[inline]
    pub fn run(self) {
        self.call(Call::Run);
    }

    /// Gives up the `Runnable` for its address, to be put into a queue of one's own.
    #[inline]
    pub fn into_raw(self) -> NonNull<Header> {
        ManuallyDrop::new(self).header
    }

    /// Takes back what [`into_raw`](Runnable::into_raw) gave.
    ///
    /// # Safety
    /// `header` came from `into_raw`, and this is the only `Runnable` made of it.
    #[inline]
    pub unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Self { header }
    }

    /// The link, for intrusive queues: the address of the next header, or null.
    ///
    /// # Safety
    /// `header` came from `into_raw`, and the caller holds that obligation.
    #[inline]
    pub unsafe fn link(header: NonNull<Header>) -> *mut *mut Header {
        // SAFETY: the holder of the obligation owns the link, and the header is alive while it is queued.
        unsafe { &raw mut (*header.as_ptr()).next }
    }

    #[inline]
    fn call(self, call: Call) {
        let header = self.into_raw();
        // SAFETY: `Runnable::new`'s caller promised that the header is alive until this call, and as we give up
        // the one `Runnable`, the call happens once.
        unsafe { ((*header.as_ptr()).call)(header, call) }
    }
}

impl Drop for Runnable {
    #[inline]
    fn drop(&mut self) {
        Self { header: self.header }.call(Call::Stop);
    }
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Runnable").field(&self.header).finish()
    }
}
