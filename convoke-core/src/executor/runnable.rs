//! The unit that an executor queues: one pointer to a header that lies inside the work itself.
//!
//! Rules of a header:
//! 1. It does not move, and is not destroyed, while there is a [`Runnable`] for it.
//! 2. There is at most one `Runnable` for it at a time. Its holder owns the link. While there is none, the
//!    work owns that word.
//! 3. `kind` always points to a live [`WorkKind`].

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::ptr::{self, NonNull};

use super::wait_location::WaitLocation;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::const_outside_models;

/// The request to a queued piece of work: to run, or to complete without running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Run.
    Run,
    /// Complete as stopped: the executor does not run it.
    Stop,
}

/// A kind of work: the function that runs or stops it. It is a constant: `const { &WorkKind::new(call) }`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct WorkKind {
    call: unsafe fn(NonNull<Header>, Call),
}

impl WorkKind {
    /// Creates the kind of work that `call` runs or stops. `call` gets the pointer that [`Runnable::new`] was
    /// given.
    #[inline]
    pub const fn new(call: unsafe fn(NonNull<Header>, Call)) -> Self {
        Self { call }
    }
}

/// The part of a piece of work that queues know: a link, and the kind of work. Work that can be queued holds
/// one, pinned.
///
/// The link belongs to the holder of the [`Runnable`], of which there is one for a header at a time. While
/// there is none, the word belongs to the work, to record where it [waits](Header::waits): work that waits is
/// in no queue.
#[repr(C)]
pub struct Header {
    /// The link, or the wait location. Atomic, because a diagnosis reads it at any time.
    link: WaitLocation,
    /// Atomic, because other threads read it while the holder of the [`Runnable`] replaces it.
    kind: AtomicPtr<WorkKind>,
}

impl Header {
    const_outside_models! {
        /// Creates a header for work of this kind.
        ///
        /// ```
        /// # use core::ptr::NonNull;
        /// use convoke::raw::{Call, Header, WorkKind};
        ///
        /// #[repr(C)]
        /// struct Work {
        ///     header: Header,
        ///     number: u32,
        /// }
        ///
        /// impl Work {
        ///     fn new(number: u32) -> Self {
        ///         Self { header: Header::new(const { &WorkKind::new(Self::call) }), number }
        ///     }
        ///
        ///     unsafe fn call(header: NonNull<Header>, call: Call) {
        ///         // SAFETY: the header is the first field (`repr(C)`) of work that exists
        ///         // until this was called.
        ///         let work = unsafe { header.cast::<Self>().as_ref() };
        ///         println!("{call:?} {}", work.number);
        ///     }
        /// }
        /// # let _ = Work::new(1);
        /// ```
        #[inline]
        pub fn new(kind: &'static WorkKind) -> Self {
            Self { link: WaitLocation::new(), kind: AtomicPtr::new(ptr::from_ref(kind).cast_mut()) }
        }
    }

    const_outside_models! {
        /// Creates a header for work of a kind that is not a constant.
        ///
        /// # Safety
        /// The kind exists, and does not change, until it is [replaced](Header::set_kind) or the work is not
        /// run any more.
        #[inline]
        pub unsafe fn of_kind(kind: NonNull<WorkKind>) -> Self {
            Self { link: WaitLocation::new(), kind: AtomicPtr::new(kind.as_ptr()) }
        }
    }

    /// Returns the kind. Acquire: it may have been published just now, by a thread that nothing else orders
    /// before the caller.
    #[inline]
    pub fn kind(&self) -> NonNull<WorkKind> {
        // SAFETY: rule 3: `new`, `of_kind` and `set_kind` store the address of a kind, which is never null.
        unsafe { NonNull::new_unchecked(self.kind.load(Ordering::Acquire)) }
    }

    /// Replaces the kind. A thread that reads the new kind sees everything that was written before this call.
    ///
    /// # Safety
    /// As for [`of_kind`](Header::of_kind). There is no [`Runnable`], or the caller holds it.
    #[inline]
    pub unsafe fn set_kind(&self, kind: NonNull<WorkKind>) {
        self.kind.store(kind.as_ptr(), Ordering::Release);
    }

    /// Returns the word in which the work records where it waits.
    ///
    /// # Safety
    /// The word is not written while there is a [`Runnable`]: it is the link then.
    #[inline]
    pub unsafe fn waits(&self) -> &WaitLocation {
        &self.link
    }

    /// Returns the link, for the queue that holds the [`Runnable`] and has set the link.
    #[inline]
    pub(super) fn link(&self) -> *mut Self {
        self.link.link()
    }

    /// Sets the link, for the holder of the [`Runnable`].
    #[inline]
    pub(super) fn set_link(&self, next: *mut Self) {
        self.link.set_link(next);
    }

    /// Returns the wait location, if the work has recorded one since it was last in a queue. For diagnosis,
    /// on any thread.
    pub fn waits_at(&self) -> Option<&'static Location<'static>> {
        self.link.get()
    }
}

/// Compares the functions by address. One function may have several addresses, and several functions one.
impl PartialEq for WorkKind {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        ptr::fn_addr_eq(self.call, other.call)
    }
}

impl fmt::Debug for WorkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkKind").finish_non_exhaustive()
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").finish_non_exhaustive()
    }
}

/// A piece of work that is ready to run. It is a pointer, and queuing it allocates nothing.
///
/// Dropping it completes its work as `Stopped`, so that no queue can lose work.
#[must_use = "dropping a runnable completes its work as stopped"]
pub struct Runnable {
    header: NonNull<Header>,
}

// SAFETY: work is made a runnable by `Runnable::new`, which requires that any thread may run and stop it.
unsafe impl Send for Runnable {}
// SAFETY: a shared `&Runnable` gives access to nothing.
unsafe impl Sync for Runnable {}

impl Runnable {
    /// Creates the runnable of the work that `header` lies in.
    ///
    /// # Safety
    /// The header does not move until its function has been called, which may happen on any thread. There is
    /// no other `Runnable` for it until then.
    #[inline]
    pub unsafe fn new(header: NonNull<Header>) -> Self {
        Self { header }
    }

    /// Runs the work on this thread.
    #[inline]
    pub fn run(self) {
        self.call(Call::Run);
    }

    /// Converts the runnable to the address of its header, for a queue of the caller's own.
    #[inline]
    pub fn into_raw(self) -> NonNull<Header> {
        ManuallyDrop::new(self).header
    }

    /// Converts an address from [`into_raw`](Runnable::into_raw) back to the runnable.
    ///
    /// # Safety
    /// `header` came from `into_raw`, and this is the only call for it.
    #[inline]
    pub unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Self { header }
    }

    /// Returns the address of its header.
    #[inline]
    pub fn address(&self) -> NonNull<Header> {
        self.header
    }

    /// Sets the link, for intrusive queues: the address of the next header, or null.
    ///
    /// # Safety
    /// `next` is null or the [address](Runnable::address) of a header, which need not exist any more: a
    /// diagnosis tells links from wait locations by their alignment.
    #[inline]
    pub unsafe fn set_link(&self, next: *mut Header) {
        // SAFETY: rules 1 and 2: the header exists while there is this runnable, and the link is its own.
        unsafe { self.header.as_ref() }.set_link(next);
    }

    #[inline]
    fn call(self, call: Call) {
        let header = self.into_raw();
        // SAFETY: rule 1: the header is alive until this call. Rule 2: this was its only `Runnable`, and
        // `into_raw` has consumed it, so the call happens once. Rule 3: the kind is alive.
        unsafe { (header.as_ref().kind().as_ref().call)(header, call) }
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
