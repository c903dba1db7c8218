//! The contract of timers: who calls a piece of work when its time has come. There is no clock in here; run loops and
//! I/O contexts, floors above, bring theirs.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::time::{Duration, Instant};

use super::Call;
use crate::sync::{UnsafeCell, const_outside_models};

/// A clock, and timers that are armed by it. An executor hands out its own by
/// [`Executor::timers`](super::Executor::timers).
///
/// Arming allocates nothing where that can be: what is to be written down lies in the [`Timer`].
///
/// # Safety
/// Its implementor says:
/// - The function of an armed timer is called once, unless [`disarm`](Timers::disarm) was in time: with [`Call::Run`], and
///   then not before its time; or with [`Call::Stop`], if the timers end before.
/// - After that call it does not touch the timer: the call may have destroyed it.
/// - When [`disarm`](Timers::disarm) has returned, the function is not called any more, and is not being called by
///   another thread.
/// - A call of [`arm`](Timers::arm) or [`arm_after`](Timers::arm_after) that unwinds has not armed the timer.
pub unsafe trait Timers: Send + Sync {
    /// What the clock says.
    fn now(&self) -> Instant;

    /// Has the timer called when the clock says `at`, or later. Earlier ones are called first, and those of the same
    /// time in the order in which they were armed. The call may come, on another thread, before this returns. Timers
    /// that have ended call at once, with [`Call::Stop`].
    ///
    /// # Safety
    /// The timer stays where it is until its function was called or `disarm` has returned, and is not armed already.
    unsafe fn arm(&self, timer: NonNull<Timer>, at: Instant);

    /// The same for a while that begins now, if `now` and it are a time that can be named. Says when it will be called, if
    /// that is known: timers whose thread looks at the clock soon anyway may begin to count when it does, so that arming
    /// needs no look of its own. Not earlier than `now` says.
    ///
    /// # Safety
    /// As for [`arm`](Timers::arm).
    unsafe fn arm_after(&self, timer: NonNull<Timer>, duration: Duration) -> Option<Instant> {
        let at = self.now() + duration;
        // SAFETY: the caller's.
        unsafe { self.arm(timer, at) };
        Some(at)
    }

    /// When a timer that was armed by [`arm_after`](Timers::arm_after), which did not know it, is called; if it waits, and
    /// that is known by now.
    ///
    /// # Safety
    /// As for [`disarm`](Timers::disarm).
    unsafe fn known_time(&self, timer: NonNull<Timer>) -> Option<Instant> {
        let _ = timer;
        None
    }

    /// Takes the timer back, and says whether that was in time: if so its function is not called. Otherwise it has been
    /// called; if it is being called just now by another thread this waits, and from inside its own call it returns at
    /// once.
    ///
    /// # Safety
    /// The timer was given to `arm` of these timers, and that call has returned; it is still there; nobody else disarms
    /// it at the same time.
    unsafe fn disarm(&self, timer: NonNull<Timer>) -> bool;
}

/// A timer, inside of the work that waits for it: one function, and room for what timers write down.
///
/// The function is called on the thread of the timers and holds up all others: it passes word on, by posting a
/// [`Runnable`](super::Runnable) for one, and runs no code of the program's. It does not unwind: if it does, the process
/// ends.
pub struct Timer {
    /// Belongs to the timers that it is armed by. Written when it is armed; before that nobody looks.
    links: UnsafeCell<MaybeUninit<TimerLinks>>,
    call: unsafe fn(NonNull<Timer>, Call),
}

/// What timers write down in a [`Timer`]. Enough for lists that one can be taken out of at once; each field means what the
/// timers say.
#[derive(Debug)]
pub struct TimerLinks {
    /// When it is to be called, as the timers count.
    pub at: u64,
    /// The one after it.
    pub next: *mut Timer,
    /// The one before it.
    pub before: *mut Timer,
    /// Which list it is in, if it waits, and what else is known of its place among the others.
    pub place: u64,
}

// SAFETY: the links are touched by the timers alone, which see to it that this is one thread at a time.
unsafe impl Send for Timer {}
// SAFETY: as above; the function pointer is never changed.
unsafe impl Sync for Timer {}

impl Timer {
    const_outside_models! {
        /// A timer that calls `call`, with the pointer that it was armed by.
        #[inline]
        pub fn new(call: unsafe fn(NonNull<Timer>, Call)) -> Self {
            Self { links: UnsafeCell::new(MaybeUninit::uninit()), call }
        }
    }

    /// Where the timers write.
    ///
    /// # Safety
    /// The timer is there. The links belong to the timers that it was armed by last; they may be read once those have
    /// written them.
    #[inline]
    pub unsafe fn links(timer: NonNull<Self>) -> *mut TimerLinks {
        // SAFETY: the caller's.
        unsafe { (*timer.as_ptr()).links.get().cast() }
    }

    /// Calls its function. `extern "C"`, which does not unwind: the caller has promised to go on calling others, and
    /// below him are the frames of whoever waits for them.
    ///
    /// # Safety
    /// For timers alone, once for each time that it was armed. It may be gone afterwards.
    #[expect(improper_ctypes_definitions, reason = "it is never called from C")]
    pub unsafe extern "C" fn call(timer: NonNull<Self>, call: Call) {
        // SAFETY: whoever armed it promised that it is there until now.
        unsafe { ((*timer.as_ptr()).call)(timer, call) }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").finish_non_exhaustive()
    }
}
