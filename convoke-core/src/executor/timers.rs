//! The contract of timers, which call a piece of work at its time. There is no clock in this crate: run loops
//! and I/O contexts, in the crates above, bring theirs.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::time::{Duration, Instant};

use super::Call;
use crate::sync::{UnsafeCell, const_outside_models};

/// A clock, and the timers that are armed by it. An executor hands out its own through
/// [`Executor::timers`](super::Executor::timers).
///
/// Arming allocates nothing if possible: the implementation stores its links in the [`Timer`].
///
/// # Safety
/// The implementation guarantees:
/// - It calls the function of an armed timer once, unless [`disarm`](Timers::disarm) was in time: with
///   [`Call::Run`], and then not before its time, or with [`Call::Stop`] if the timers end before.
/// - It does not touch the timer after that call: the call may have destroyed it.
/// - When [`disarm`](Timers::disarm) has returned, the function is not called any more, and is not being
///   called by another thread.
/// - A call of [`arm`](Timers::arm) or [`arm_after`](Timers::arm_after) that unwinds has not armed the timer.
pub unsafe trait Timers: Send + Sync {
    /// Returns the time of the clock.
    fn now(&self) -> Instant;

    /// Arms the timer: it is called when the clock has reached `at`, or later. Earlier timers are called
    /// first, and those of the same time in the order in which they were armed. The call may happen on
    /// another thread before this returns. Timers that have ended call at once, with [`Call::Stop`].
    fn arm(&self, timer: IdleTimer, at: Instant);

    /// Arms the timer for `duration` from now. Returns the time of the call, if it is known already. Timers
    /// whose thread reads the clock soon anyway may count from then on, so that arming does not read the
    /// clock. The call is never earlier than `now` plus `duration`.
    ///
    /// `now` plus `duration` must be a representable time.
    fn arm_after(&self, timer: IdleTimer, duration: Duration) -> Option<Instant> {
        let at = self.now() + duration;
        self.arm(timer, at);
        Some(at)
    }

    /// Returns the time of a timer that [`arm_after`](Timers::arm_after) has armed without knowing it, if the
    /// timer still waits and the time is known by now.
    fn known_time(&self, timer: ArmedTimer) -> Option<Instant> {
        let _ = timer;
        None
    }

    /// Disarms the timer. Returns true if that was in time: then its function is not called. Otherwise it has
    /// been called. If another thread is calling it now, this waits for that. From inside its own call it
    /// returns at once.
    fn disarm(&self, timer: ArmedTimer) -> bool;
}

/// A timer that is not armed, and the right to arm it. [`Timers`] take it over when they arm it.
#[derive(Debug)]
pub struct IdleTimer(NonNull<Timer>);

impl IdleTimer {
    /// Creates the handle that arms the timer at this address.
    ///
    /// # Safety
    /// The timer exists and is not armed, and this is its only `IdleTimer`. From arming it until its function
    /// was called, or until `disarm` has returned, it does not move and is not destroyed.
    #[inline]
    pub unsafe fn new(timer: NonNull<Timer>) -> Self {
        Self(timer)
    }

    /// Returns the address that the timer is called with.
    #[inline]
    pub fn address(&self) -> NonNull<Timer> {
        self.0
    }
}

/// A timer that was armed, as its owner knows it: to disarm it, or to ask for its time.
#[derive(Clone, Copy, Debug)]
pub struct ArmedTimer(NonNull<Timer>);

impl ArmedTimer {
    /// Creates the handle that disarms the timer at this address.
    ///
    /// # Safety
    /// The timers that the handle is passed to have armed the timer last, with this address, and that call
    /// has returned. The timer exists until the call that the handle is passed to has returned, and no other
    /// thread makes such a call at the same time.
    #[inline]
    pub unsafe fn new(timer: NonNull<Timer>) -> Self {
        Self(timer)
    }

    /// Returns the address that the timer was armed with.
    #[inline]
    pub fn address(self) -> NonNull<Timer> {
        self.0
    }
}

/// A timer, inside of the work that waits for it: one function, and storage for the links of the [`Timers`].
///
/// The function is called on the thread of the timers and delays all other timers. It only passes the event
/// on, for example by posting a [`Runnable`](super::Runnable), and runs no code of the program. It does not
/// unwind: if it does, the process aborts.
///
/// 1. `links` belongs to the timers that have armed it, which let one thread at a time access it.
/// 2. `call` does not change.
/// 3. A timer that is armed exists until it is called or disarmed: [`IdleTimer::new`] requires it.
pub struct Timer {
    /// Written when the timer is armed, and not read before.
    links: UnsafeCell<MaybeUninit<TimerLinks>>,
    call: unsafe fn(NonNull<Timer>, Call),
}

/// The links of a [`Timer`], for its [`Timers`]. Enough for doubly linked lists. The timers define the
/// meaning of each field.
#[derive(Debug)]
pub struct TimerLinks {
    /// The time of the call, in the unit of the timers.
    pub at: Cell<u64>,
    /// The next timer in the list.
    pub next: Cell<Option<NonNull<Timer>>>,
    /// The previous timer in the list.
    pub before: Cell<NonNull<Timer>>,
    /// The list that it is in, if it waits, and other data of the timers about its position.
    pub position: Cell<u64>,
}

// SAFETY: rule 1: the timers let one thread at a time access the links. Rule 2: `call` is a function pointer.
unsafe impl Send for Timer {}
// SAFETY: rule 1: the timers let one thread at a time access the links. Rule 2: `call` does not change.
unsafe impl Sync for Timer {}

/// Returns the address of timers, to be stored. Whoever reads it back knows that the timers are still there.
#[inline]
pub fn address_of_timers(timers: &dyn Timers) -> NonNull<dyn Timers> {
    // SAFETY: this changes only the lifetime, and that of a pointer promises nothing.
    unsafe { core::mem::transmute::<NonNull<dyn Timers + '_>, NonNull<dyn Timers>>(NonNull::from(timers)) }
}

impl Timer {
    const_outside_models! {
        /// Creates a timer that calls `call` with the pointer that it was armed by.
        #[inline]
        pub fn new(call: unsafe fn(NonNull<Timer>, Call)) -> Self {
            Self { links: UnsafeCell::new(MaybeUninit::uninit()), call }
        }
    }

    /// Returns the address of the links.
    ///
    /// # Safety
    /// The timer exists. Only the timers that have armed it last use the result (rule 1), and they write the
    /// links before they read them.
    #[inline]
    pub unsafe fn links(timer: NonNull<Self>) -> *mut TimerLinks {
        // SAFETY: the timer exists: the timers that call this got it as an `IdleTimer` or an `ArmedTimer`.
        // Only a pointer to a field is made.
        unsafe { (*timer.as_ptr()).links.get().cast() }
    }

    /// Calls the function of the timer. `extern "C"`, which does not unwind: the caller has other timers to
    /// call, and must not be unwound.
    ///
    /// # Safety
    /// Called by the timers, once for each time that the timer was armed. The timer may be destroyed by the
    /// call.
    #[expect(improper_ctypes_definitions, reason = "it is never called from C")]
    pub unsafe extern "C" fn call(timer: NonNull<Self>, call: Call) {
        // SAFETY: rule 3: the timer exists until this call, which is the only one since it was armed.
        unsafe { ((*timer.as_ptr()).call)(timer, call) }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").finish_non_exhaustive()
    }
}
