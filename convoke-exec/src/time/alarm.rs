//! A timer inside a future: it wakes the future at its time, and is disarmed when the future is dropped.
//!
//! 1. `executor`, `armed_by` and `mark` belong to the owner, which polls and drops the alarm.
//! 2. `waker` belongs to the owner while the timer is not armed. While it is armed, `waker` belongs to the
//!    timer's call, or to the owner again after it has disarmed the timer.
//! 3. The call takes the waker, then stores its kind in `state`, and touches nothing of the alarm after that.
//!    So an owner that reads in `state` that the call was made has exclusive access again, and need not
//!    disarm the timer.
//! 4. `armed_by` points to the timers of the executor in `executor`, or to those of the process. Both outlive
//!    the alarm. It is set when they have armed the timer, and only the owner disarms it.
//! 5. The alarm is pinned when it is armed, and `drop` disarms it. So the timer exists, and does not move,
//!    while it is armed.

#![allow(unsafe_code)]

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::marker::PhantomPinned;
use core::mem;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Waker};
use std::time::Instant;

use convoke_core::ExecutorRef;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};
use convoke_core::raw::{
    ArmedTimer, Call, DropOutOfLine, IdleTimer, LastUse, Timer, Timers, WakerMark, address_of_timers,
};

use super::{When, fallback, timers_for};
use convoke_core::raw::{discard, wake_if_any};

/// A timer that wakes a future.
#[repr(C)]
pub struct Alarm {
    // The first field, so that a pointer to the timer is a pointer to the alarm.
    timer: Timer,
    waker: UnsafeCell<Option<Waker>>,
    /// Identifies the task that `waker` wakes.
    mark: Cell<Option<WakerMark>>,
    /// Keeps the timers alive.
    executor: OnceCell<ExecutorRef>,
    armed_by: Cell<Option<NonNull<dyn Timers>>>,
    state: AtomicU8,
    _pinned: PhantomPinned,
}

/// Not armed, or armed and not called yet.
const PENDING: u8 = 0;
/// Called at its time.
const DUE: u8 = 1;
/// Called with `Call::Stop`: the timers were closed first.
const ENDED: u8 = 2;

// SAFETY: `armed_by` points to timers, which are `Send` and `Sync`; the pointer and the cells are used by the
// owner alone, as rule 1 says. Rule 2 gives the waker to one thread at a time.
unsafe impl Send for Alarm {}

impl Alarm {
    /// Creates an alarm that is not armed.
    #[inline]
    pub fn new() -> Self {
        Self {
            timer: Timer::new(Self::called),
            waker: UnsafeCell::new(None),
            mark: Cell::new(None),
            executor: OnceCell::new(),
            armed_by: Cell::new(None),
            state: AtomicU8::new(PENDING),
            _pinned: PhantomPinned,
        }
    }

    /// Reads the clock of this executor's timers, and selects these timers for the alarm.
    ///
    /// # Panics
    /// If the executor has no timers and the thread `convoke-timers` cannot be started; and if it is the
    /// `InlineExecutor`.
    pub fn now(self: Pin<&Self>, executor: &ExecutorRef) -> Instant {
        self.use_timers_of(executor);
        self.get_ref().clock().now()
    }

    /// Selects the timers of this executor. Only the first call has an effect.
    #[inline]
    pub(super) fn use_timers_of(self: Pin<&Self>, executor: &ExecutorRef) {
        self.get_ref().executor.get_or_init(|| executor.clone());
    }

    /// Returns the selected timers.
    #[inline]
    pub(super) fn clock(&self) -> &dyn Timers {
        match self.executor.get() {
            Some(executor) => timers_for(executor),
            None => fallback::timers(),
        }
    }

    /// Returns true if the time was reached. If not, the waker of `cx` is called then. Each call must pass
    /// the same time, and [`now`](Alarm::now) must have been called before. The first call does not check the
    /// clock: the caller must handle a time that was already reached.
    pub fn poll(self: Pin<&Self>, at: Instant, cx: &Context<'_>) -> bool {
        self.poll_when(When::At(at), cx)
    }

    /// Returns true if the time was reached. If not, the waker of `cx` is called then. A duration starts with
    /// the first call, by which the timers must be selected.
    // Without `#[inline]`: it is too large to be inlined, and was compiled into each codegen unit.
    pub(super) fn poll_when(self: Pin<&Self>, when: When, cx: &Context<'_>) -> bool {
        let Some((timers, timer)) = self.get_ref().armed() else {
            self.arm(self.get_ref().clock(), when, cx);
            return false;
        };
        self.poll_armed(timers, timer, when, cx)
    }

    fn poll_armed(
        self: Pin<&Self>,
        timers: &dyn Timers,
        timer: ArmedTimer,
        when: When,
        cx: &Context<'_>,
    ) -> bool {
        match self.state.load(Ordering::Acquire) {
            DUE => true,
            // A task may outlive the executor that it began on. The timers of the process are never closed.
            ENDED => {
                let timers = fallback::timers();
                let now = timers.now();
                // A duration whose end was not known yet starts again.
                let is_due = when.from(now).is_some_and(|at| at <= now);
                if !is_due {
                    self.arm(timers, when, cx);
                }
                is_due
            }
            _ if self.mark.get() == Some(WakerMark::of(cx.waker())) => false,
            _ => {
                let when = match when {
                    // If the duration has not started, it starts when it would have without this.
                    When::After(_) => timers.known_time(timer).map_or(when, When::At),
                    When::At(_) => when,
                };
                if timers.disarm(timer) {
                    self.arm(timers, when, cx);
                    return false;
                }
                self.poll_when(when, cx)
            }
        }
    }

    /// Returns true if the timer was called at its time.
    pub fn is_due(&self) -> bool {
        self.state.load(Ordering::Acquire) == DUE
    }

    /// Moves the timer to another time, with the waker that it has. Returns false if it does not wait any
    /// more: it was not armed, or was called.
    pub fn move_to(self: Pin<&Self>, when: When) -> bool {
        let Some((timers, timer)) = self.get_ref().armed() else { return false };
        let waits = self.state.load(Ordering::Acquire) == PENDING && timers.disarm(timer);
        if waits {
            self.arm_timer(timers, when);
        }
        waits
    }

    /// Disarms the timer, if it is armed, and drops the waker. It is like new, but for the timers that were
    /// selected.
    pub fn disarm(self: Pin<&Self>) {
        if let Some((timers, timer)) = self.get_ref().armed()
            && self.state.load(Ordering::Acquire) == PENDING
        {
            timers.disarm(timer);
        }
        self.armed_by.set(None);
        self.state.store(PENDING, Ordering::Relaxed);
        self.get_ref().replace_waker(None).into_iter().for_each(discard);
    }

    /// Replaces the waker, for `arm` and `disarm`: the timer is not armed.
    #[inline]
    fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: rule 2: the timer is not armed, as `arm` requires and `disarm` sees to, and they are called
        // by the owner.
        self.waker.with_mut(|slot| unsafe { mem::replace(&mut *slot, waker) })
    }

    /// Arms the timer, which must not be armed, with the waker of `cx`.
    #[inline]
    fn arm(self: Pin<&Self>, timers: &dyn Timers, when: When, cx: &Context<'_>) {
        let waker = cx.waker().clone();
        let old_waker = self.get_ref().replace_waker(Some(waker));
        self.mark.set(Some(WakerMark::of(cx.waker())));
        self.arm_timer(timers, when);
        drop(old_waker);
    }

    /// Arms the timer, which must not be armed, with the waker that it has.
    #[inline]
    fn arm_timer(self: Pin<&Self>, timers: &dyn Timers, when: When) {
        // Relaxed: arming orders this before the call that writes it next.
        self.state.store(PENDING, Ordering::Relaxed);
        // `None` until arming has returned: the clock is user code and may panic, and a timer that is not
        // armed must not be disarmed. Rule 1: nothing else reads it meanwhile.
        self.armed_by.set(None);
        // SAFETY: it is not armed: it never was, it was called, or it was disarmed. Rule 5: it stays in place
        // while it is armed.
        let timer = unsafe { IdleTimer::new(self.get_ref().address()) };
        match when {
            When::At(at) => timers.arm(timer, at),
            When::After(duration) => _ = timers.arm_after(timer, duration),
        }
        self.armed_by.set(Some(address_of_timers(timers)));
    }

    /// Returns the timers that have armed it, and the handle to disarm it there, if it was armed. It may have
    /// been called since.
    #[inline]
    fn armed(&self) -> Option<(&dyn Timers, ArmedTimer)> {
        let timers = self.armed_by.get()?;
        // SAFETY: rule 4: the timers exist, and have armed it; only the owner, which calls this, disarms it.
        // Rule 5: the timer exists until then.
        Some(unsafe { (timers.as_ref(), ArmedTimer::new(self.address())) })
    }

    /// Returns the address with which it is armed. It is derived from a reference to the whole alarm.
    fn address(&self) -> NonNull<Timer> {
        NonNull::from(self).cast()
    }

    /// Handles the call of the timer.
    ///
    /// # Safety
    /// Called by the timers, once for each time that the alarm was armed, with the pointer with which it was
    /// armed.
    unsafe fn called(timer: NonNull<Timer>, call: Call) {
        let state = if call == Call::Run { DUE } else { ENDED };
        // SAFETY: the timer is the first field of an alarm (`repr(C)`), and `address` derived the pointer
        // from the whole alarm. Rule 3: the alarm is alive until `state` is stored. Rule 2: the waker is ours
        // until then. Only shared references are created.
        let waker = unsafe {
            let this = timer.cast::<Self>().as_ref();
            let waker = this.waker.with_mut(|waker| (*waker).take());
            this.state.store(state, Ordering::Release);
            waker
        };
        // `wake_if_any` contains a panic of the waker: the call of a timer must not unwind.
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
        if let Some((timers, timer)) = self.armed()
            && self.state.load(Ordering::Acquire) == PENDING
        {
            timers.disarm(timer);
        }
    }
}

impl DropOutOfLine for Alarm {
    #[inline(never)]
    fn drop_out_of_line(alarm: LastUse<'_, Self>) {
        alarm.drop_here();
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("armed", &self.armed_by.get().is_some()).finish_non_exhaustive()
    }
}
