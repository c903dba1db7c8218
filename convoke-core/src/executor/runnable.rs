//! The unit an executor queues: one pointer to a header that lies inside the work itself.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::ptr::{self, NonNull};

use super::waits::Waits;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::const_outside_models;

/// What a queued piece of work is asked to do when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Run.
    Run,
    /// Complete as stopped: the executor will not run it.
    Stop,
}

/// What all work of one kind has in common: the function that runs or stops it. It is a constant:
/// `const { &WorkKind::new(call) }`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct WorkKind {
    call: unsafe fn(NonNull<Header>, Call),
}

impl WorkKind {
    /// The kind of work that `call` runs or stops. It is given the pointer that [`Runnable::new`] was given.
    #[inline]
    pub const fn new(call: unsafe fn(NonNull<Header>, Call)) -> Self {
        Self { call }
    }
}

/// The part of the work that queues know: a link, and what kind of work it is. Work that can be queued holds one, pinned.
///
/// The link belongs to whoever holds the [`Runnable`]: there is one for a header at a time. While there is none the word is the
/// work's own, to say where it [waits](Header::waits): what waits is in no queue.
#[repr(C)]
pub struct Header {
    /// The link, or where it waits. Atomic, for people who look.
    link: Waits,
    /// Atomic: the holder of the [`Runnable`] replaces it while other threads read it.
    kind: AtomicPtr<WorkKind>,
}

impl Header {
    const_outside_models! {
        /// A header for work of this kind.
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
        ///         // SAFETY: the header is the first field (`repr(C)`) of work that is there until this was called.
        ///         let work = unsafe { header.cast::<Self>().as_ref() };
        ///         println!("{call:?} {}", work.number);
        ///     }
        /// }
        /// # let _ = Work::new(1);
        /// ```
        #[inline]
        pub fn new(kind: &'static WorkKind) -> Self {
            Self { link: Waits::new(), kind: AtomicPtr::new(ptr::from_ref(kind).cast_mut()) }
        }
    }

    const_outside_models! {
        /// A header for work of a kind that does not live for ever.
        ///
        /// # Safety
        /// The kind is there, and is not changed, until it is [replaced](Header::set_kind) or the work is not run any more.
        #[inline]
        pub unsafe fn of_kind(kind: NonNull<WorkKind>) -> Self {
            Self { link: Waits::new(), kind: AtomicPtr::new(kind.as_ptr()) }
        }
    }

    /// The kind. Acquire: it may have been published a moment ago, by a thread that nothing else orders before the caller.
    #[inline]
    pub fn kind(&self) -> NonNull<WorkKind> {
        // SAFETY: `new`, `of_kind` and `set_kind` store the address of a kind.
        unsafe { NonNull::new_unchecked(self.kind.load(Ordering::Acquire)) }
    }

    /// From now on it is work of this kind. What was written to the kind before this is seen by whoever sees the kind.
    ///
    /// # Safety
    /// As for [`of_kind`](Header::of_kind); and nobody holds the [`Runnable`], or the caller does.
    #[inline]
    pub unsafe fn set_kind(&self, kind: NonNull<WorkKind>) {
        self.kind.store(kind.as_ptr(), Ordering::Release);
    }

    /// The word in which the work says where it waits.
    ///
    /// # Safety
    /// Nothing is written there while there is a [`Runnable`]: it is its link then.
    #[inline]
    pub unsafe fn waits(&self) -> &Waits {
        &self.link
    }

    /// Where it waits, if it has said so since it was last in a queue; for people who look, at any time.
    pub fn waits_at(&self) -> Option<&'static Location<'static>> {
        self.link.get()
    }
}

/// Whether it is the same function. One function may have several addresses, and several one.
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

    /// The link, for intrusive queues: the address of the next header, or null. Whoever puts work into a queue
    /// [sets](Runnable::set_link) it first: until then it may be anything.
    ///
    /// # Safety
    /// `header` came from `into_raw`, the caller holds that obligation, and the link was set since.
    #[inline]
    pub unsafe fn link(header: NonNull<Header>) -> *mut Header {
        // SAFETY: the header is alive while it is queued.
        unsafe { header.as_ref() }.link.link()
    }

    /// Sets the link.
    ///
    /// # Safety
    /// `header` came from `into_raw`, and the caller holds that obligation.
    #[inline]
    pub unsafe fn set_link(header: NonNull<Header>, next: *mut Header) {
        // SAFETY: the holder of the obligation owns the link, and the header is alive while it is queued.
        unsafe { header.as_ref() }.link.set_link(next);
    }

    #[inline]
    fn call(self, call: Call) {
        let header = self.into_raw();
        // SAFETY: `Runnable::new`'s caller promised that the header is alive until this call, and as we give up
        // the one `Runnable`, the call happens once. The kind is there: `Header::of_kind`.
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
