//! A timer inside a future: it wakes the future when its time has come, and is taken back when the future goes.
//!
//! 1. `executor`, `armed_by` and `mark` belong to the owner, who polls and drops.
//! 2. `waker` belongs to the owner while the timer is not armed, and to its call, or to whoever takes it back, while it is.
//! 3. The call takes the waker, then says in `state` what it was, and touches nothing of the alarm after that. So an owner
//!    who reads that there was a call is alone again, and need not take the timer back.
//! 4. The timers that it is armed by are those of the executor in `executor`, or of the process: both outlive the alarm.

#![allow(unsafe_code)]

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Waker};
use std::time::Instant;

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};
use convoke_core::raw::{Call, Timer, Timers, WakerMark};
use convoke_core::{Executor, ExecutorRef};

use super::{When, fallback};
use convoke_core::raw::wake_if_any;

/// See the head of this file.
#[repr(C)]
pub struct Alarm {
    // First, so that a pointer to it is a pointer to the alarm.
    timer: Timer,
    waker: UnsafeCell<Option<Waker>>,
    /// Whose waker it is.
    mark: Cell<Option<WakerMark>>,
    /// Keeps the timers.
    executor: OnceCell<ExecutorRef>,
    armed_by: Cell<Option<NonNull<dyn Timers>>>,
    state: AtomicU8,
    _pinned: PhantomPinned,
}

/// It is not armed, or waits.
const QUIET: u8 = 0;
/// The time has come.
const DUE: u8 = 1;
/// The timers have ended before.
const ENDED: u8 = 2;

// SAFETY: timers are `Send` and `Sync`, and the pointer to them is used by the owner alone: rule 1. The
// waker is used by one at a time: rule 2.
unsafe impl Send for Alarm {}

impl Alarm {
    /// One that is not set.
    #[inline]
    pub fn new() -> Self {
        Self {
            timer: Timer::new(Self::called),
            waker: UnsafeCell::new(None),
            mark: Cell::new(None),
            executor: OnceCell::new(),
            armed_by: Cell::new(None),
            state: AtomicU8::new(QUIET),
            _pinned: PhantomPinned,
        }
    }

    /// What the clock of this executor's timers says. It is the executor whose timers will be used.
    ///
    /// # Panics
    /// If the executor has no timers, and the thread for that cannot be started.
    pub fn now(self: Pin<&Self>, executor: &ExecutorRef) -> Instant {
        self.use_timers_of(executor);
        self.get_ref().clock().now()
    }

    /// The timers of this executor will be used.
    #[inline]
    pub(super) fn use_timers_of(self: Pin<&Self>, executor: &ExecutorRef) {
        self.get_ref().executor.get_or_init(|| executor.clone());
    }

    /// The timers of the executor that [`now`](Alarm::now) was asked for.
    #[inline]
    pub(super) fn clock(&self) -> &dyn Timers {
        self.executor.get().and_then(Executor::timers).unwrap_or_else(|| fallback::timers())
    }

    /// Whether the time has come; if not, the waker will be called then. It is the same time in each call, and
    /// [`now`](Alarm::now) was asked before: whether the time had come by then is the caller's to see.
    pub fn poll(self: Pin<&Self>, at: Instant, cx: &Context<'_>) -> bool {
        self.poll_when(When::At(at), cx)
    }

    /// The same for a time, or for a while that begins with the first call, in which the timers are known.
    #[inline]
    pub(super) fn poll_when(self: Pin<&Self>, when: When, cx: &Context<'_>) -> bool {
        let Some(timers) = self.armed_by.get() else {
            self.arm(self.get_ref().clock(), when, cx);
            return false;
        };
        self.poll_armed(timers, when, cx)
    }

    fn poll_armed(self: Pin<&Self>, timers: NonNull<dyn Timers>, when: When, cx: &Context<'_>) -> bool {
        match self.state.load(Ordering::Acquire) {
            DUE => true,
            // A task may outlive the executor it began on. The process's timers do not end.
            ENDED => {
                let timers = fallback::timers();
                let now = timers.now();
                // A while whose end was not known begins anew.
                let up = when.from(now).is_some_and(|at| at <= now);
                if !up {
                    self.arm(timers, when, cx);
                }
                up
            }
            _ if self.mark.get() == Some(WakerMark::of(cx.waker())) => false,
            _ => {
                // SAFETY: rule 4; it was armed by them.
                let timers = unsafe { timers.as_ref() };
                let when = match when {
                    // SAFETY: as above. If the while has not begun, it does when the other one would.
                    When::After(_) => unsafe { timers.known_time(self.address()) }.map_or(when, When::At),
                    When::At(_) => when,
                };
                // SAFETY: as above, and only we disarm it.
                if unsafe { timers.disarm(self.address()) } {
                    self.arm(timers, when, cx);
                    return false;
                }
                self.poll_when(when, cx)
            }
        }
    }

    /// Whether it has rung.
    pub fn is_due(&self) -> bool {
        self.state.load(Ordering::Acquire) == DUE
    }

    /// It is not armed.
    #[inline]
    fn arm(self: Pin<&Self>, timers: &dyn Timers, when: When, cx: &Context<'_>) {
        let waker = cx.waker().clone();
        // SAFETY: rule 2: it is not armed.
        let before = self.waker.with_mut(|room| unsafe { (*room).replace(waker) });
        self.mark.set(Some(WakerMark::of(cx.waker())));
        // The call that will write it next sees this: arming hands all to it.
        self.state.store(QUIET, Ordering::Relaxed);
        // Until arming has returned: whoever owns the clock may panic, and what is not armed must not be taken back. Nobody but us
        // asks for it meanwhile: rule 1.
        self.armed_by.set(None);
        // SAFETY: the same pointer; only the compiler's knowledge of how long it is good is given up. Rule 4.
        let kept = unsafe {
            core::mem::transmute::<NonNull<dyn Timers + '_>, NonNull<dyn Timers>>(NonNull::from(timers))
        };
        // SAFETY: we are pinned, and disarm it when we are dropped. It is not armed: it never was, has been called, or was
        // taken back.
        unsafe {
            match when {
                When::At(at) => timers.arm(self.address(), at),
                When::After(duration) => _ = timers.arm_after(self.address(), duration),
            }
        }
        self.armed_by.set(Some(kept));
        drop(before);
    }

    /// What it is armed with: the address of all of us.
    fn address(self: Pin<&Self>) -> NonNull<Timer> {
        NonNull::from(self.get_ref()).cast()
    }

    /// # Safety
    /// Called once for each time that it was armed, by the timers, with what they were given.
    unsafe fn called(timer: NonNull<Timer>, call: Call) {
        let state = if call == Call::Run { DUE } else { ENDED };
        // SAFETY: the timer is the first field of an alarm (`repr(C)`), and the pointer was made from one to all of it. It is
        // there until we say that we were called, and the waker is ours until then: rules 2 and 3. Only shared references
        // are made of it.
        let waker = unsafe {
            let this = timer.cast::<Self>().as_ref();
            let waker = this.waker.with_mut(|waker| (*waker).take());
            this.state.store(state, Ordering::Release);
            waker
        };
        // Contained: a timer does not unwind.
        wake_if_any(waker);
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // Acquire: rule 3.
        if let Some(timers) = self.armed_by.get()
            && self.state.load(Ordering::Acquire) == QUIET
        {
            // The address that it was armed with: of all of us.
            let this = NonNull::from(&*self).cast();
            // SAFETY: rule 4; it was armed by them, and we are still there. Only we disarm it.
            unsafe { timers.as_ref().disarm(this) };
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("armed", &self.armed_by.get().is_some()).finish_non_exhaustive()
    }
}
