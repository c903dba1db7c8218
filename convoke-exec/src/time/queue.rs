//! Timers that wait, under one lock that is never held while one is called. Whoever owns a queue brings the thread: it
//! looks at the time, calls what is due, and sleeps until the next.
//!
//! The rules of who may touch what:
//! 1. A timer's links and the fields of `Waiting` are touched with the lock held.
//! 2. A timer stays where it is from `arm` until it was called or `disarm` has returned.
//! 3. Whoever takes a timer out to call it does that once and does not touch it afterwards.
//! 4. One thread at a time calls timers. It may do so again from inside of a call: that is why `calls` is a list.

use core::fmt;
use core::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use convoke_core::raw::sync::atomic::{AtomicU64, Ordering};
use convoke_core::raw::sync::{Condvar, Mutex, MutexGuard, thread};
use convoke_core::raw::{Call, Timer};

use super::heap::Heap;

/// Timers that wait, earliest first; those of the same time in the order in which they were armed.
///
/// What a run loop or an I/O context makes its [`Timers`](convoke_core::raw::Timers) of. It has no thread and reads no
/// clock: its owner calls [`call_due`](TimerQueue::call_due).
pub struct TimerQueue {
    /// When the earliest is due, in nanoseconds since `epoch`; `NEVER` if there is none. A hint that costs one load:
    /// written with the lock held.
    earliest: AtomicU64,
    epoch: Instant,
    waiting: Mutex<Waiting>,
    called: Condvar,
}

struct Waiting {
    heap: Heap,
    closed: bool,
    /// The innermost call that is being made.
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
    by: thread::ThreadId,
    outer: *const Calling,
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

impl TimerQueue {
    /// A queue without timers.
    pub fn new() -> Self {
        Self {
            earliest: AtomicU64::new(NEVER),
            epoch: Instant::now(),
            waiting: Mutex::new(Waiting {
                heap: Heap::new(),
                closed: false,
                calls: ptr::null(),
                sleepers: 0,
            }),
            called: Condvar::new(),
        }
    }

    /// Whether no timer waits. One load.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: whoever arms a timer that a sleeper must hear of sees to that.
        self.earliest.load(Ordering::Relaxed) == NEVER
    }

    /// When the earliest is due, if there is one. One load.
    pub fn earliest(&self) -> Option<Instant> {
        match self.earliest.load(Ordering::Relaxed) {
            NEVER => None,
            nanoseconds => Some(self.epoch + Duration::from_nanos(nanoseconds)),
        }
    }

    /// See [`Timers::arm`](convoke_core::raw::Timers::arm).
    ///
    /// # Safety
    /// As there.
    pub unsafe fn arm(&self, timer: NonNull<Timer>, at: Instant) -> AfterArm {
        let mut waiting = self.lock();
        if waiting.closed {
            // SAFETY: rule 1; the caller promised that it is there; nobody else knows of it.
            unsafe { Heap::leave_out(timer, at) };
            drop(waiting);
            // SAFETY: as above.
            unsafe { Timer::call(timer, Call::Stop) };
            return AfterArm::Waits;
        }
        let before = waiting.heap.earliest();
        // SAFETY: rule 1; the caller promised that it stays and is not armed already.
        unsafe { waiting.heap.insert(timer, at) };
        if before.is_some_and(|before| before <= at) {
            return AfterArm::Waits;
        }
        self.note_earliest(&waiting);
        AfterArm::IsEarliest
    }

    /// See [`Timers::disarm`](convoke_core::raw::Timers::disarm).
    ///
    /// # Safety
    /// As there.
    pub unsafe fn disarm(&self, timer: NonNull<Timer>) -> bool {
        let mut waiting = self.lock();
        // SAFETY: rule 1; the caller promised that it is there, and that it was armed by us.
        unsafe {
            if (*Timer::links(timer)).armed {
                waiting.heap.remove(timer);
                self.note_earliest(&waiting);
                return true;
            }
        }
        self.wait_for_call(waiting, timer.as_ptr());
        false
    }

    /// Calls all that are due at `now`, in their order. Those that are armed meanwhile wait for the next time, so that
    /// this ends. Says how many it has called.
    ///
    /// One thread at a time calls this or [`close`](TimerQueue::close): the owner's.
    pub fn call_due(&self, now: Instant) -> usize {
        let mut called = 0;
        let mut waiting = self.lock();
        let inserted = waiting.heap.inserted();
        while let Some(timer) = waiting.heap.pop_due(now, inserted) {
            self.note_earliest(&waiting);
            waiting = self.call(waiting, timer, Call::Run);
            called += 1;
        }
        called
    }

    /// Ends all timers: those that wait, and those that will be armed, are called with [`Call::Stop`].
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        while let Some(timer) = waiting.heap.pop() {
            self.note_earliest(&waiting);
            waiting = self.call(waiting, timer, Call::Stop);
        }
    }

    /// Calls a timer that was taken out, without the lock.
    fn call<'a>(
        &'a self,
        mut waiting: MutexGuard<'a, Waiting>,
        timer: NonNull<Timer>,
        call: Call,
    ) -> MutexGuard<'a, Waiting> {
        let calling = Calling { timer: timer.as_ptr(), by: thread::current().id(), outer: waiting.calls };
        waiting.calls = &raw const calling;
        drop(waiting);
        // SAFETY: rules 2 and 3: it is there, for `disarm` waits for us, and we took it out.
        unsafe { Timer::call(timer, call) };
        let mut waiting = self.lock();
        // Inner calls have ended, so the innermost is ours.
        waiting.calls = calling.outer;
        if waiting.sleepers > 0 {
            self.called.notify_all();
        }
        waiting
    }

    /// Returns when no other thread is inside of the timer's call.
    fn wait_for_call(&self, mut waiting: MutexGuard<'_, Waiting>, timer: *const Timer) {
        waiting.sleepers += 1;
        while waiting.is_called_elsewhere(timer) {
            waiting = self.called.wait(waiting).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        waiting.sleepers -= 1;
    }

    fn note_earliest(&self, waiting: &Waiting) {
        let earliest = match waiting.heap.earliest() {
            None => NEVER,
            Some(at) => {
                let nanoseconds = at.saturating_duration_since(self.epoch).as_nanos();
                // So far away that nobody will find out that it is too early.
                u64::try_from(nanoseconds).unwrap_or(NEVER - 1).min(NEVER - 1)
            }
        };
        self.earliest.store(earliest, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Waiting {
    fn is_called_elsewhere(&self, timer: *const Timer) -> bool {
        let mut calling = self.calls;
        // SAFETY: rule 1; a call takes itself off the list, with the lock held, before its frame ends.
        while let Some(Calling { timer: called, by, outer }) = unsafe { calling.as_ref() } {
            if ptr::eq(*called, timer) {
                // From inside of it. If its address is that of an outer one that is long gone, it is our thread too.
                return *by != thread::current().id();
            }
            calling = *outer;
        }
        false
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
