//! Timers that wait, under one lock that is never held while one is called. Whoever owns a queue brings the thread: it
//! looks at the time, calls what is due, and sleeps until the next.
//!
//! The rules of who may touch what:
//! 1. A timer's links and the fields of `Waiting` are touched with the lock held.
//! 2. A timer stays where it is from `arm` until it was called or `disarm` has returned.
//! 3. Whoever takes a timer out to call it does that once and does not touch it afterwards.
//! 4. One thread at a time is to call timers; it may do so again from inside of a call. Nobody enforces that, so `calls` is a
//!    list that each call takes itself out of, wherever it stands: if several threads call timers, their order is lost, and
//!    nothing else.
//! 5. Who waits for a call on another thread has said so in `sleepers`, and looks with the gate held; who ends a call and
//!    sees sleepers opens the gate afterwards. So none sleeps through it, and all others never see the gate.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::ptr::{self, NonNull};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use convoke_core::raw::sync::atomic::{AtomicU64, Ordering};
use convoke_core::raw::sync::{Condvar, Mutex, thread_mark};
use convoke_core::raw::{Call, Timer};

use super::wheel::{Earliest, Wheel};
use convoke_core::raw::{SpinGuard, SpinLock};

/// Timers that wait, earliest first; those of the same time in the order in which they were armed.
///
/// What a run loop or an I/O context makes its [`Timers`](convoke_core::raw::Timers) of. It has no thread and reads no
/// clock: its owner calls [`call_due`](TimerQueue::call_due).
pub struct TimerQueue {
    /// When the earliest is due, as nanoseconds; `NEVER` if there is none. Costs one load; written with the lock held.
    earliest: AtomicU64,
    /// When timers were called last.
    called_at: AtomicU64,
    /// The time whose number is `EPOCH`.
    epoch: Instant,
    waiting: SpinLock<Waiting>,
    gate: Mutex<()>,
    called: Condvar,
}

struct Waiting {
    wheel: Wheel,
    closed: bool,
    /// How often timers were looked through.
    looks: u64,
    /// The calls that are being made, the last that has begun first.
    calls: *const Calling,
    /// How many wait in `disarm` for a call on another thread.
    sleepers: usize,
}

// SAFETY: rule 1: the pointers are followed with the lock held; rule 2, and the stack of whoever calls, keep what they
// point to alive.
unsafe impl Send for Waiting {}

/// A call that is being made, on the stack of whoever makes it.
struct Calling {
    /// Compared by address, never followed.
    timer: *const Timer,
    by: u64,
    /// The one before it in the list. Touched with the lock held.
    outer: Cell<*const Calling>,
}

/// What the one who armed a timer must do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a thread that sleeps too long must be woken"]
pub enum AfterArm {
    /// Nothing.
    Waits,
    /// See to it that the thread which calls looks at the time of the earliest: it is another now.
    IsEarliest,
}

const NEVER: u64 = u64::MAX;
/// A bit of `earliest`: it is a time before which none is due, but none may be due then.
const NOT_BEFORE: u64 = 1 << 63;
/// In `earliest`: there are some whose time will be known at the next look.
const AT_ONCE: u64 = NOT_BEFORE;
/// The number of the time at which the queue was made: times before that are times too.
const EPOCH: u64 = 1 << 61;
/// So far away that nobody will find out that it is too early.
const LAST: u64 = NOT_BEFORE - 1;
/// How long a thread sleeps at least that has just called timers, in nanoseconds.
const PAUSE: u64 = 1 << 18;

impl TimerQueue {
    /// A queue without timers.
    pub fn new() -> Self {
        Self::since(Instant::now())
    }

    /// A queue without timers, for a clock that shows no time before this one from now on.
    pub fn since(epoch: Instant) -> Self {
        Self {
            earliest: AtomicU64::new(NEVER),
            called_at: AtomicU64::new(0),
            epoch,
            waiting: SpinLock::new(Waiting {
                wheel: Wheel::new(EPOCH),
                closed: false,
                looks: 0,
                calls: ptr::null(),
                sleepers: 0,
            }),
            gate: Mutex::new(()),
            called: Condvar::new(),
        }
    }

    /// Whether no timer waits. One load.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: whoever arms a timer that a sleeper must hear of sees to that.
        self.earliest.load(Ordering::Relaxed) == NEVER
    }

    /// When the earliest is due, if there is one: for clocks that jump. One load, unless it is not known just now; then some
    /// of those that wait are looked at. Those whose while has not begun do not count: see [`settle`](TimerQueue::settle).
    pub fn earliest(&self) -> Option<Instant> {
        let known = self.earliest.load(Ordering::Relaxed);
        if known == NEVER || known & NOT_BEFORE == 0 {
            return self.instant(known);
        }
        let waiting = self.lock();
        let earliest = waiting.wheel.earliest_exactly().unwrap_or(NEVER);
        if !waiting.wheel.has_fresh() {
            self.earliest.store(earliest, Ordering::Relaxed);
        }
        self.instant(earliest)
    }

    /// When to call [`call_due`](TimerQueue::call_due) next, if there is a timer: for threads that sleep. That is when the
    /// earliest is due; or earlier, when that was taken back or is far away: then the call finds out more; or up to a quarter
    /// of a millisecond later, when others were called just now: then all that are due by then are called at once, so that
    /// many timers do not mean as many times of going to sleep. A few loads.
    pub fn next_look(&self) -> Option<Instant> {
        let earliest = self.earliest.load(Ordering::Relaxed);
        if earliest == NEVER {
            return None;
        }
        let soon = self.called_at.load(Ordering::Relaxed) + PAUSE;
        self.instant((earliest & !NOT_BEFORE).max(soon))
    }

    /// See [`Timers::arm`](convoke_core::raw::Timers::arm).
    ///
    /// # Safety
    /// As there.
    pub unsafe fn arm(&self, timer: NonNull<Timer>, at: Instant) -> AfterArm {
        let at = self.number(at);
        let mut waiting = self.lock();
        if waiting.closed {
            // SAFETY: the caller promised that it is there; nobody else knows of it.
            unsafe { self.refuse(waiting, timer, at) };
            return AfterArm::Waits;
        }
        // SAFETY: rule 1; the caller promised that it stays and is not armed already.
        unsafe { waiting.wheel.insert(timer, at) };
        let before = self.earliest.load(Ordering::Relaxed);
        if before != NEVER && before & !NOT_BEFORE <= at {
            return AfterArm::Waits;
        }
        self.earliest.store(at, Ordering::Relaxed);
        AfterArm::IsEarliest
    }

    /// See [`Timers::arm_after`](convoke_core::raw::Timers::arm_after): the while begins at the next look, and until then the
    /// queue wants one.
    ///
    /// # Safety
    /// As there; and by the thread that looks, which will do so before it sleeps.
    #[inline]
    pub unsafe fn arm_at_next_look(&self, timer: NonNull<Timer>, duration: Duration) {
        let duration = nanoseconds(duration);
        let mut waiting = self.lock();
        if waiting.closed {
            // SAFETY: the caller's.
            return unsafe { self.refuse(waiting, timer, duration) };
        }
        // SAFETY: rule 1; the caller promised that it stays and is not armed already.
        unsafe { waiting.wheel.insert_fresh(timer, duration) };
        self.earliest.store(AT_ONCE, Ordering::Relaxed);
    }

    /// For those that were armed for a while which begins at the next look it begins now. One load, if there are none. By
    /// the thread that looks.
    pub fn settle(&self, now: impl FnOnce() -> Instant) {
        if self.earliest.load(Ordering::Relaxed) == AT_ONCE {
            let now = self.number(now());
            let mut waiting = self.lock();
            waiting.wheel.settle(now, LAST);
            self.note_earliest(&waiting);
        }
    }

    /// See [`Timers::known_time`](convoke_core::raw::Timers::known_time).
    ///
    /// # Safety
    /// As there.
    pub unsafe fn known_time(&self, timer: NonNull<Timer>) -> Option<Instant> {
        // SAFETY: rule 1; the caller promised that it is there, and that it was armed by us.
        unsafe { self.lock().wheel.time_of(timer) }.and_then(|at| self.instant(at))
    }

    /// The timers have ended.
    ///
    /// # Safety
    /// The timer is there, and nobody else knows of it.
    #[cold]
    unsafe fn refuse(&self, waiting: SpinGuard<'_, Waiting>, timer: NonNull<Timer>, at: u64) {
        // SAFETY: the caller's, and rule 1.
        unsafe { Wheel::leave_out(timer, at) };
        drop(waiting);
        // SAFETY: the caller's.
        unsafe { Timer::call(timer, Call::Stop) };
    }

    /// See [`Timers::disarm`](convoke_core::raw::Timers::disarm).
    ///
    /// # Safety
    /// As there.
    pub unsafe fn disarm(&self, timer: NonNull<Timer>) -> bool {
        let mut waiting = self.lock();
        // SAFETY: rule 1; the caller promised that it is there, and that it was armed by us.
        let Some(at) = (unsafe { waiting.wheel.remove(timer) }) else {
            if waiting.is_called_elsewhere(timer.as_ptr()) {
                self.wait_for_call(waiting, timer.as_ptr());
            }
            return false;
        };
        if waiting.wheel.is_empty() {
            self.earliest.store(NEVER, Ordering::Relaxed);
        } else if self.earliest.load(Ordering::Relaxed) == at {
            // To look for the next one is left to who wants to know: most are taken back before they are due.
            self.earliest.store(at | NOT_BEFORE, Ordering::Relaxed);
        }
        true
    }

    /// Calls all that are due at `now`, in their order. Those that are armed meanwhile for a time which has passed wait for the
    /// next look, so that this ends. Says how many it has called. One load, if none is due.
    ///
    /// One thread at a time calls this, [`call_some_due`](TimerQueue::call_some_due) or [`close`](TimerQueue::close): the
    /// owner's. If several do, each timer is called once, but not in order.
    pub fn call_due(&self, now: Instant) -> usize {
        self.call_some_due(now, usize::MAX)
    }

    /// The same for so many of them at most: for loops that run what the calls have posted before they look for more. The rest
    /// is due at the next look.
    pub fn call_some_due(&self, now: Instant, limit: usize) -> usize {
        let now = self.number(now);
        let earliest = self.earliest.load(Ordering::Relaxed);
        if earliest == NEVER || earliest & !NOT_BEFORE > now {
            return 0;
        }
        let mut waiting = self.lock();
        waiting.wheel.settle(now, LAST);
        waiting.wheel.begin_look();
        waiting.looks += 1;
        let look = waiting.looks;
        let mut called = 0;
        // A look from inside of a call has called the rest.
        while called < limit && waiting.looks == look {
            if let Some(timer) = waiting.wheel.pop_due(now) {
                waiting = self.call(waiting, timer, Call::Run);
                called += 1;
            } else if !waiting.wheel.advance(now) {
                if called > 0 {
                    self.called_at.store(now, Ordering::Relaxed);
                }
                break;
            }
        }
        self.note_earliest(&waiting);
        called
    }

    /// Ends all timers: those that wait, and those that will be armed, are called with [`Call::Stop`].
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.wheel.settle(EPOCH, LAST);
        waiting.wheel.begin_look();
        loop {
            if let Some(timer) = waiting.wheel.pop_due(NEVER) {
                waiting = self.call(waiting, timer, Call::Stop);
            } else if !waiting.wheel.advance(NEVER) {
                break;
            }
        }
        self.note_earliest(&waiting);
    }

    /// Calls a timer that was taken out, without the lock.
    fn call<'a>(
        &'a self,
        mut waiting: SpinGuard<'a, Waiting>,
        timer: NonNull<Timer>,
        call: Call,
    ) -> SpinGuard<'a, Waiting> {
        let calling = Calling { timer: timer.as_ptr(), by: thread_mark(), outer: Cell::new(waiting.calls) };
        waiting.calls = &raw const calling;
        drop(waiting);
        // SAFETY: rules 2 and 3: it is there, for `disarm` waits for us, and we took it out.
        unsafe { Timer::call(timer, call) };
        let mut waiting = self.lock();
        waiting.end_call(&calling);
        if waiting.sleepers > 0 {
            return self.open_gate(waiting);
        }
        waiting
    }

    /// A call has ended, and somebody may wait for it.
    #[cold]
    fn open_gate<'a>(&'a self, waiting: SpinGuard<'a, Waiting>) -> SpinGuard<'a, Waiting> {
        drop(waiting);
        // Rule 5: whoever has looked before the call had ended sleeps by now.
        drop(self.gate.lock().unwrap_or_else(PoisonError::into_inner));
        self.called.notify_all();
        self.lock()
    }

    /// Returns when no other thread is inside of the timer's call.
    #[cold]
    fn wait_for_call(&self, mut waiting: SpinGuard<'_, Waiting>, timer: *const Timer) {
        waiting.sleepers += 1;
        drop(waiting);
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        while self.lock().is_called_elsewhere(timer) {
            gate = self.called.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        self.lock().sleepers -= 1;
    }

    fn note_earliest(&self, waiting: &Waiting) {
        let earliest = match waiting.wheel.earliest() {
            _ if waiting.wheel.has_fresh() => AT_ONCE,
            Earliest::None => NEVER,
            Earliest::At(at) => at,
            Earliest::NotBefore(at) => at | NOT_BEFORE,
        };
        self.earliest.store(earliest, Ordering::Relaxed);
    }

    /// A time as a number.
    #[inline]
    fn number(&self, at: Instant) -> u64 {
        match at.checked_duration_since(self.epoch) {
            Some(after) => nanoseconds(after).saturating_add(EPOCH).min(LAST),
            None => EPOCH.saturating_sub(nanoseconds(self.epoch.saturating_duration_since(at))),
        }
    }

    /// The time of a number.
    fn instant(&self, number: u64) -> Option<Instant> {
        if number == NEVER {
            return None;
        }
        let number = number & !NOT_BEFORE;
        let before = Duration::from_nanos(EPOCH.saturating_sub(number));
        let after = Duration::from_nanos(number.saturating_sub(EPOCH));
        // A time that cannot be named does not come.
        self.epoch.checked_sub(before).unwrap_or(self.epoch).checked_add(after)
    }

    #[inline]
    fn lock(&self) -> SpinGuard<'_, Waiting> {
        self.waiting.lock()
    }
}

#[inline]
fn nanoseconds(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000_000_000).saturating_add(span.subsec_nanos().into())
}

impl Waiting {
    fn is_called_elsewhere(&self, timer: *const Timer) -> bool {
        let mut calling = self.calls;
        // SAFETY: rule 1; a call takes itself off the list, with the lock held, before its frame ends.
        while let Some(Calling { timer: called, by, outer }) = unsafe { calling.as_ref() } {
            // From inside of it nobody waits. A call of this thread with the same address may also be one of a timer that
            // is long gone: there may be another.
            if ptr::eq(*called, timer) && *by != thread_mark() {
                return true;
            }
            calling = outer.get();
        }
        false
    }

    /// Takes a call off the list: most often the last that was put there, unless several threads call timers.
    #[inline]
    fn end_call(&mut self, ended: &Calling) {
        if ptr::eq(self.calls, ended) {
            self.calls = ended.outer.get();
        } else {
            self.end_earlier_call(ended);
        }
    }

    #[cold]
    fn end_earlier_call(&self, ended: &Calling) {
        let mut calling = self.calls;
        // SAFETY: rule 1; as above.
        while let Some(other) = unsafe { calling.as_ref() } {
            calling = other.outer.get();
            if ptr::eq(calling, ended) {
                return other.outer.set(ended.outer.get());
            }
        }
    }
}

impl Default for TimerQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TimerQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerQueue").field("earliest", &self.earliest()).finish_non_exhaustive()
    }
}
