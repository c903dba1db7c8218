//! A timer inside a future: it wakes the future when its time has come, and is taken back when the future goes.
//!
//! 1. `armed_by` is written by the owner alone, who polls and drops.
//! 2. `state` is shared with the timer's call, under its lock. The call touches nothing else of the alarm, and nothing at
//!    all after it has given back the lock.
//! 3. The timers that it is armed by are those of the executor in `executor`, or of the process: both outlive the alarm.

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Waker};
use std::time::Instant;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{Call, Timer, Timers};
use convoke_core::{Executor, ExecutorRef, Panic};

use super::fallback;

/// See the head of this file.
#[repr(C)]
pub struct Alarm {
    // First, so that a pointer to it is a pointer to the alarm.
    timer: Timer,
    state: Mutex<State>,
    /// Keeps the timers.
    executor: OnceCell<ExecutorRef>,
    armed_by: Cell<Option<NonNull<dyn Timers>>>,
    _pinned: PhantomPinned,
}

enum State {
    /// It waits, and wakes this one.
    Waits(Waker),
    /// The time has come.
    Due,
    /// The timers have ended before.
    Ended,
}

// SAFETY: timers are `Send` and `Sync`, and the pointer to them is used by the owner alone: rule 1.
unsafe impl Send for Alarm {}

impl Alarm {
    /// One that is not set.
    pub fn new() -> Self {
        Self {
            timer: Timer::new(Self::called),
            state: Mutex::new(State::Ended),
            executor: OnceCell::new(),
            armed_by: Cell::new(None),
            _pinned: PhantomPinned,
        }
    }

    /// What the clock of this executor's timers says. It is the executor whose timers will be used.
    ///
    /// # Panics
    /// If the executor has no timers, and the thread for that cannot be started.
    pub fn now(self: Pin<&Self>, executor: &ExecutorRef) -> Instant {
        let executor = self.get_ref().executor.get_or_init(|| executor.clone());
        executor.timers().unwrap_or_else(|| fallback::timers()).now()
    }

    /// Whether the time has come; if not, the waker will be called then. It is the same time in each call, and
    /// [`now`](Alarm::now) was asked before.
    pub fn poll(self: Pin<&Self>, at: Instant, cx: &Context<'_>) -> bool {
        if self.armed_by.get().is_none() {
            let own = self.get_ref().executor.get().and_then(Executor::timers);
            return self.arm(own.unwrap_or_else(|| fallback::timers()), at, cx);
        }
        let mut state = self.lock();
        match &*state {
            State::Due => true,
            State::Waits(waker) if waker.will_wake(cx.waker()) => false,
            State::Waits(_) => {
                let before = core::mem::replace(&mut *state, State::Waits(cx.waker().clone()));
                drop(state);
                drop(before);
                false
            }
            // A task may outlive the executor it began on. The process's timers do not end.
            State::Ended => {
                drop(state);
                self.arm(fallback::timers(), at, cx)
            }
        }
    }

    /// Whether it has rung.
    pub fn is_due(&self) -> bool {
        self.armed_by.get().is_some() && matches!(*self.lock(), State::Due)
    }

    fn arm(self: Pin<&Self>, timers: &dyn Timers, at: Instant, cx: &Context<'_>) -> bool {
        if timers.now() >= at {
            return true;
        }
        *self.lock() = State::Waits(cx.waker().clone());
        let this = NonNull::from(self.get_ref());
        // SAFETY: the same pointer; only the compiler's knowledge of how long it is good is given up. Rule 3.
        let kept = unsafe {
            core::mem::transmute::<NonNull<dyn Timers + '_>, NonNull<dyn Timers>>(NonNull::from(timers))
        };
        self.armed_by.set(Some(kept));
        // SAFETY: we are pinned, and disarm it when we are dropped. It is not armed: it never was, or has been called.
        unsafe { timers.arm(this.cast(), at) };
        false
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// # Safety
    /// Called once for each time that it was armed, by the timers, with what they were given.
    unsafe fn called(timer: NonNull<Timer>, call: Call) {
        // SAFETY: the timer is the first field of an alarm (`repr(C)`), and the pointer was made from one to all of it. It is
        // there: dropping it waits for us. Only shared references are made of it.
        let this = unsafe { timer.cast::<Self>().as_ref() };
        let now = if call == Call::Run { State::Due } else { State::Ended };
        let before = core::mem::replace(&mut *this.lock(), now);
        if let State::Waits(waker) = before {
            // It may be anybody's waker, and a timer does not unwind.
            let _ = Panic::catch(|| waker.wake());
        }
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(timers) = self.armed_by.get() {
            // The address that it was armed with: of all of us.
            let this = NonNull::from(&*self).cast();
            // SAFETY: rule 3; it was armed by them, and we are still there. Only we disarm it.
            unsafe { timers.as_ref().disarm(this) };
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("armed", &self.armed_by.get().is_some()).finish_non_exhaustive()
    }
}
