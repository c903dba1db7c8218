//! Armed timers, under one lock that is never held while a timer is called. The owner of a queue provides the
//! thread: it reads the clock, calls due timers, and sleeps until the next one.
//!
//! The rules of access:
//! 1. The links of an armed timer and the fields of `Waiting` are touched with the lock held: rule 5 of
//!    `lists.rs`.
//! 2. `disarm` returns when the timer is not called any more: it waits for a call on another thread. So a
//!    timer that was taken out to be called exists until then.
//! 3. One thread at a time should call timers; it may do so again from inside a call. Nothing enforces that.
//!    Therefore each call removes itself from `calls`, wherever it is in there: if several threads call
//!    timers, only their order is lost.
//! 4. A thread that waits in `disarm` for a call on another thread counts itself in `disarmers`, and checks
//!    with `call_mutex` held. A thread that ends a call and sees `disarmers` locks and unlocks `call_mutex`
//!    and then notifies. So no wake-up is lost, and calls without such waiters never touch the mutex.

#![allow(unsafe_code)]

use core::fmt;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use convoke_core::raw::sync::atomic::{AtomicU64, Ordering};
use convoke_core::raw::sync::{Condvar, Mutex, thread_mark};
use convoke_core::raw::{ArmedTimer, Call, IdleTimer};

use super::lists::Due;
use super::wheel::{Earliest, Wheel};
use convoke_core::raw::{SpinGuard, SpinLock};

/// Armed timers, earliest first; those of the same time in the order in which they were armed.
///
/// A run loop or an I/O context implements its [`Timers`](convoke_core::raw::Timers) with it. It has no
/// thread and reads no clock: its owner calls [`call_due`](TimerQueue::call_due).
pub struct TimerQueue {
    /// The time of the earliest timer in nanoseconds; `NEVER` if there is none. Reading it is one load; it is
    /// written with the lock held.
    earliest: AtomicU64,
    /// The time at which timers were called last.
    called_at: AtomicU64,
    /// The time that is represented by `EPOCH`.
    epoch: Instant,
    waiting: SpinLock<Waiting>,
    /// Rule 4.
    call_mutex: Mutex<()>,
    call_ended: Condvar,
}

struct Waiting {
    wheel: Wheel,
    closed: bool,
    /// Number of rounds of calls so far. A nested round ends the outer one.
    rounds: u64,
    /// The calls in progress, the latest last. There are more than one only if calls are nested, or several
    /// threads call timers.
    calls: Vec<ActiveCall>,
    /// Number of threads that wait in `disarm` for a call on another thread.
    disarmers: usize,
}

// SAFETY: rule 1: the timers in the wheel are used with the lock held, by one thread at a time, and are
// `Sync`.
unsafe impl Send for Waiting {}

/// A call in progress.
#[derive(PartialEq)]
struct ActiveCall {
    /// The address of the timer. Only compared.
    timer: usize,
    /// The mark of the calling thread.
    by: u64,
}

/// The number of nested calls for which there is memory from the beginning.
const NESTED_CALLS: usize = 4;

/// Tells the thread that armed a timer what it must do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a thread that sleeps too long must be woken"]
pub enum AfterArm {
    /// Nothing.
    Waits,
    /// Make sure that the calling thread of the queue reads the earliest time again: it has changed.
    IsEarliest,
}

const NEVER: u64 = u64::MAX;
/// A bit of `earliest`: no timer is due before this time, but perhaps none is due at it either.
const NOT_BEFORE: u64 = 1 << 63;
/// A value of `earliest`: there are timers for durations that start at the next check.
const AT_ONCE: u64 = NOT_BEFORE;
/// The number of the time at which the queue was created, so that earlier times can be represented too.
const EPOCH: u64 = 1 << 61;
/// The latest time, 219 years after the epoch. Later times are treated as this one.
const LAST: u64 = NOT_BEFORE - 1;
/// Nanoseconds that a thread sleeps at least after it has called timers, so that close timers share a
/// wake-up.
const COALESCE: u64 = 1 << 18;

impl TimerQueue {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::since(Instant::now())
    }

    /// Creates an empty queue for a clock that shows no time before `epoch`.
    pub fn since(epoch: Instant) -> Self {
        Self {
            earliest: AtomicU64::new(NEVER),
            called_at: AtomicU64::new(0),
            epoch,
            waiting: SpinLock::new(Waiting {
                wheel: Wheel::new(EPOCH),
                closed: false,
                rounds: 0,
                calls: Vec::with_capacity(NESTED_CALLS),
                disarmers: 0,
            }),
            call_mutex: Mutex::new(()),
            call_ended: Condvar::new(),
        }
    }

    /// Returns true if no timer is armed. One load.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: a thread that arms a timer which a sleeping thread must learn of wakes it.
        self.earliest.load(Ordering::Relaxed) == NEVER
    }

    /// Returns the exact time of the earliest timer, for clocks that jump. One load, unless the time is not
    /// known at the moment; then it visits some of the timers. Timers for durations that have not started do
    /// not count: call [`settle`](TimerQueue::settle) first.
    pub fn earliest(&self) -> Option<Instant> {
        let known = self.earliest.load(Ordering::Relaxed);
        if known == NEVER || known & NOT_BEFORE == 0 {
            return self.instant(known);
        }
        let waiting = self.lock();
        let earliest = waiting.wheel.earliest_exactly().unwrap_or(NEVER);
        if !waiting.wheel.has_unstarted() {
            self.earliest.store(earliest, Ordering::Relaxed);
        }
        self.instant(earliest)
    }

    /// Returns the time at which to call [`call_due`](TimerQueue::call_due) next, for threads that sleep.
    /// That is the time of the earliest timer; or earlier, if that one was disarmed or is far away, and then
    /// the call finds out more; or up to a quarter of a millisecond later, if timers were called just before,
    /// and then all that are due by then are called together, so that many timers do not cause as many
    /// wake-ups. A few loads.
    pub fn next_check(&self) -> Option<Instant> {
        let earliest = self.earliest.load(Ordering::Relaxed);
        if earliest == NEVER {
            return None;
        }
        let earliest_wake_up = self.called_at.load(Ordering::Relaxed) + COALESCE;
        self.instant((earliest & !NOT_BEFORE).max(earliest_wake_up))
    }

    /// Arms a timer, as [`Timers::arm`](convoke_core::raw::Timers::arm).
    pub fn arm(&self, timer: IdleTimer, at: Instant) -> AfterArm {
        let at = self.nanos(at);
        let mut waiting = self.lock();
        if waiting.closed {
            refuse(waiting, timer);
            return AfterArm::Waits;
        }
        waiting.wheel.insert(timer, at);
        let before = self.earliest.load(Ordering::Relaxed);
        if before != NEVER && before & !NOT_BEFORE <= at {
            return AfterArm::Waits;
        }
        self.earliest.store(at, Ordering::Relaxed);
        AfterArm::IsEarliest
    }

    /// Arms a timer for a duration that starts at the next check, as
    /// [`Timers::arm_after`](convoke_core::raw::Timers::arm_after). Until then `next_check` asks for a check
    /// at once.
    ///
    /// The caller is the thread that calls timers, and checks the queue before it sleeps; otherwise the
    /// duration does not start.
    #[inline]
    pub fn arm_at_next_check(&self, timer: IdleTimer, duration: Duration) {
        let duration = nanoseconds(duration);
        let mut waiting = self.lock();
        if waiting.closed {
            return refuse(waiting, timer);
        }
        waiting.wheel.insert_unstarted(timer, duration);
        self.earliest.store(AT_ONCE, Ordering::Relaxed);
    }

    /// Starts the durations that were armed by [`arm_at_next_check`](TimerQueue::arm_at_next_check). One load,
    /// if there are none. Called by the thread that calls timers.
    #[inline]
    pub fn settle(&self, now: impl FnOnce() -> Instant) {
        if self.earliest.load(Ordering::Relaxed) == AT_ONCE {
            self.start_durations(now());
        }
    }

    /// Starts them. Not generic, so that it is compiled once.
    fn start_durations(&self, now: Instant) {
        let now = self.nanos(now);
        let mut waiting = self.lock();
        waiting.wheel.settle(now, LAST);
        self.update_earliest(&waiting);
    }

    /// Returns the time of an armed timer, as [`Timers::known_time`](convoke_core::raw::Timers::known_time).
    pub fn known_time(&self, timer: ArmedTimer) -> Option<Instant> {
        self.lock().wheel.time_of(timer).and_then(|at| self.instant(at))
    }

    /// Disarms a timer, as [`Timers::disarm`](convoke_core::raw::Timers::disarm).
    pub fn disarm(&self, timer: ArmedTimer) -> bool {
        let mut waiting = self.lock();
        let Some(at) = waiting.wheel.remove(timer) else {
            let address = timer.address().addr().get();
            if waiting.is_called_elsewhere(address) {
                self.wait_for_call(waiting, address);
            }
            return false;
        };
        if waiting.wheel.is_empty() {
            self.earliest.store(NEVER, Ordering::Relaxed);
        } else if self.earliest.load(Ordering::Relaxed) == at {
            // The search for the new earliest is left to the thread that needs it: most timers are
            // disarmed before they are due.
            self.earliest.store(at | NOT_BEFORE, Ordering::Relaxed);
        }
        true
    }

    /// Calls all timers that are due at `now`, in order. A timer that is armed meanwhile for a time that has
    /// passed waits for the next call, so that this one ends. Returns the number of calls. One load, if none
    /// is due.
    ///
    /// One thread at a time, the owner's, should call this, [`call_some_due`](TimerQueue::call_some_due) or
    /// [`close`](TimerQueue::close). If several do, each timer is still called once, but not in order.
    pub fn call_due(&self, now: Instant) -> usize {
        self.call_some_due(now, usize::MAX)
    }

    /// Calls at most `limit` timers that are due at `now`, in order; for loops that run what the calls post
    /// before they call more. The rest is due at the next call. Returns the number of calls.
    pub fn call_some_due(&self, now: Instant, limit: usize) -> usize {
        let now = self.nanos(now);
        let earliest = self.earliest.load(Ordering::Relaxed);
        if earliest == NEVER || earliest & !NOT_BEFORE > now {
            return 0;
        }
        let mut waiting = self.lock();
        waiting.wheel.settle(now, LAST);
        waiting.wheel.take_late();
        waiting.rounds += 1;
        let round = waiting.rounds;
        let mut called = 0;
        // A nested round, from inside a call, has called the rest.
        while called < limit && waiting.rounds == round {
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
        self.update_earliest(&waiting);
        called
    }

    /// Closes the queue: armed timers, and timers that are armed later, are called with [`Call::Stop`].
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.wheel.settle(EPOCH, LAST);
        waiting.wheel.take_late();
        loop {
            if let Some(timer) = waiting.wheel.pop_due(NEVER) {
                waiting = self.call(waiting, timer, Call::Stop);
            } else if !waiting.wheel.advance(NEVER) {
                break;
            }
        }
        self.update_earliest(&waiting);
    }

    /// Calls a timer that was taken out of the wheel, without the lock.
    fn call<'a>(
        &'a self,
        mut waiting: SpinGuard<'a, Waiting>,
        timer: Due,
        call: Call,
    ) -> SpinGuard<'a, Waiting> {
        let (timer_address, by) = (timer.address(), thread_mark());
        waiting.calls.push(ActiveCall { timer: timer_address, by });
        drop(waiting);
        // Rule 2: the timer exists until it is called, as `disarm` waits for this call.
        timer.call(call);
        let mut waiting = self.lock();
        waiting.end_call(&ActiveCall { timer: timer_address, by });
        if waiting.disarmers > 0 {
            return self.notify_disarmers(waiting);
        }
        waiting
    }

    /// Notifies the threads that may wait in `disarm` for the call that has just ended.
    #[cold]
    fn notify_disarmers<'a>(&'a self, waiting: SpinGuard<'a, Waiting>) -> SpinGuard<'a, Waiting> {
        drop(waiting);
        // Rule 4: a thread that checked before the call ended waits on the condition variable by now.
        drop(self.call_mutex.lock().unwrap_or_else(PoisonError::into_inner));
        self.call_ended.notify_all();
        self.lock()
    }

    /// Waits until no other thread is inside the timer's call.
    #[cold]
    fn wait_for_call(&self, mut waiting: SpinGuard<'_, Waiting>, timer: usize) {
        waiting.disarmers += 1;
        drop(waiting);
        let mut held = self.call_mutex.lock().unwrap_or_else(PoisonError::into_inner);
        while self.lock().is_called_elsewhere(timer) {
            held = self.call_ended.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        self.lock().disarmers -= 1;
    }

    /// Stores the earliest time, or a bound of it. The lock is held.
    fn update_earliest(&self, waiting: &Waiting) {
        let earliest = match waiting.wheel.earliest() {
            _ if waiting.wheel.has_unstarted() => AT_ONCE,
            Earliest::None => NEVER,
            Earliest::At(at) => at,
            Earliest::NotBefore(at) => at | NOT_BEFORE,
        };
        self.earliest.store(earliest, Ordering::Relaxed);
    }

    /// Converts a time to nanoseconds, with `EPOCH` for the epoch.
    #[inline]
    fn nanos(&self, at: Instant) -> u64 {
        match at.checked_duration_since(self.epoch) {
            Some(after) => nanoseconds(after).saturating_add(EPOCH).min(LAST),
            None => EPOCH.saturating_sub(nanoseconds(self.epoch.saturating_duration_since(at))),
        }
    }

    /// Converts nanoseconds to a time. `NEVER` is `None`.
    fn instant(&self, nanos: u64) -> Option<Instant> {
        if nanos == NEVER {
            return None;
        }
        let nanos = nanos & !NOT_BEFORE;
        let before = Duration::from_nanos(EPOCH.saturating_sub(nanos));
        let after = Duration::from_nanos(nanos.saturating_sub(EPOCH));
        // A time that an `Instant` cannot represent is never reached.
        self.epoch.checked_sub(before).unwrap_or(self.epoch).checked_add(after)
    }

    #[inline]
    fn lock(&self) -> SpinGuard<'_, Waiting> {
        self.waiting.lock()
    }
}

/// Calls a timer with [`Call::Stop`] that is armed after the queue was closed.
#[cold]
fn refuse(waiting: SpinGuard<'_, Waiting>, timer: IdleTimer) {
    let refused = Due::refused(timer);
    drop(waiting);
    refused.call(Call::Stop);
}

#[inline]
fn nanoseconds(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000_000_000).saturating_add(span.subsec_nanos().into())
}

impl Waiting {
    /// Returns true if another thread is inside the call of the timer at this address. A call does not wait
    /// for itself.
    fn is_called_elsewhere(&self, timer: usize) -> bool {
        self.calls.iter().any(|call| call.timer == timer && call.by != thread_mark())
    }

    /// Removes a call. It is the latest one, unless several threads call timers.
    #[inline]
    fn end_call(&mut self, ended: &ActiveCall) {
        if self.calls.pop_if(|call| call == ended).is_none() {
            self.end_earlier_call(ended);
        }
    }

    #[cold]
    fn end_earlier_call(&mut self, ended: &ActiveCall) {
        if let Some(index) = self.calls.iter().rposition(|call| call == ended) {
            self.calls.remove(index);
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
