//! The rendezvous of an awaiting future with the operation it awaits. A state machine in one word, without
//! unsafe code: each transition returns what its caller must do now.
//!
//! | state | meaning |
//! | --- | --- |
//! | `STARTING` | the operation is being started; the future does not wait yet |
//! | `WAITING` | the future waits, and its waker is stored; the one that leaves this state owns the waker |
//! | `CHANGING` | the future stores another waker |
//! | `LEAVING` | the outcome is stored; the operation takes the waker and then moves to `DONE` |
//! | `DONE` | the outcome is stored, and everything belongs to the future |
//! | `ABANDONED` | the future is gone; the operation frees everything when it completes |

use core::fmt;
use core::hint;
use core::hint::cold_path;

use crate::sync::atomic::{AtomicU8, Ordering};
#[cfg(feature = "loom")]
use crate::sync::thread;

const STARTING: u8 = 0;
const WAITING: u8 = 1;
const CHANGING: u8 = 2;
const LEAVING: u8 = 3;
const DONE: u8 = 4;
const ABANDONED: u8 = 5;

/// The state machine of an awaiting future and the operation it awaits.
pub struct Rendezvous {
    word: AtomicU8,
}

/// The next step of a future that has started its operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Wait {
    /// The future returns `Pending`. Its waker will be called.
    Wait,
    /// The future takes the outcome. The waker still belongs to it.
    Done,
}

/// The next step of a future that is polled again.
#[derive(Debug, PartialEq, Eq)]
pub enum Peek {
    /// The operation has not completed. After [`Rendezvous::change`] the waker belongs to the future until
    /// [`Rendezvous::changed`].
    NotYet,
    /// The future takes the outcome.
    Done,
}

/// The next step of an operation that has stored its outcome.
#[derive(Debug, PartialEq, Eq)]
pub enum Complete {
    /// Nothing: the future that starts it sees the outcome.
    Leave,
    /// The operation takes the waker, calls [`Rendezvous::left`] and then the waker.
    Wake,
    /// The operation frees everything: the future is gone.
    Free,
}

/// The next step of a future that is dropped.
#[derive(Debug, PartialEq, Eq)]
pub enum Abandon {
    /// Nothing: the operation frees everything when it completes.
    Leave,
    /// The future frees everything: the operation has completed.
    Free,
}

impl Rendezvous {
    /// Creates a rendezvous in the state `STARTING`.
    #[inline]
    pub fn new() -> Self {
        Self { word: AtomicU8::new(STARTING) }
    }

    /// Returns true if the operation has completed by the time the future has started it. Otherwise the
    /// future stores its waker and calls [`wait`](Rendezvous::wait).
    #[inline]
    pub fn completed_at_once(&self) -> bool {
        self.is_done()
    }

    /// Returns true if the outcome is stored and the operation is gone. Changes nothing.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.word.load(Ordering::Acquire) == DONE
    }

    /// Waits: called by the future after it has stored its waker.
    #[inline]
    pub fn wait(&self) -> Wait {
        match self.word.compare_exchange(STARTING, WAITING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Wait::Wait,
            Err(_) => Wait::Done,
        }
    }

    /// Checks for completion: called by a future that is polled again.
    #[inline]
    pub fn peek(&self) -> Peek {
        match self.word.load(Ordering::Acquire) {
            DONE => Peek::Done,
            LEAVING => self.wait_until_done(),
            _ => Peek::NotYet,
        }
    }

    /// Begins to replace the waker: called by the future. `Done` means that it is too late, and not needed.
    pub fn change(&self) -> Peek {
        match self.word.compare_exchange(WAITING, CHANGING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Peek::NotYet,
            Err(DONE) => Peek::Done,
            Err(_) => self.wait_until_done(),
        }
    }

    /// Ends the replacement of the waker: called by the future.
    pub fn changed(&self) {
        self.word.store(WAITING, Ordering::Release);
    }

    /// Completes: called by the operation after it has stored the outcome.
    #[inline]
    pub fn complete(&self) -> Complete {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            if seen == CHANGING || seen == ABANDONED {
                // The exchange reads it again, with the right ordering.
                seen = WAITING;
            }
            let next = if seen == WAITING { LEAVING } else { DONE };
            match self.word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(WAITING) => return Complete::Wake,
                Ok(_) => return Complete::Leave,
                Err(ABANDONED) => return Complete::Free,
                Err(CHANGING) => {
                    pause();
                    seen = WAITING;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Leaves: called by the operation after it has taken the waker. It touches nothing afterwards.
    #[inline]
    pub fn left(&self) {
        self.word.store(DONE, Ordering::Release);
    }

    /// Abandons the operation: called by a future that is dropped, after it has requested a stop.
    pub fn abandon(&self) -> Abandon {
        let mut seen = WAITING;
        loop {
            match self.word.compare_exchange(seen, ABANDONED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Abandon::Leave,
                Err(DONE) => return Abandon::Free,
                Err(LEAVING) => pause(),
                Err(now) => seen = now,
            }
        }
    }

    /// Waits like [`wait`](Rendezvous::wait), where future and operation are on one thread.
    #[inline]
    pub fn wait_here(&self) -> Wait {
        if self.word.load(Ordering::Relaxed) == DONE {
            return Wait::Done;
        }
        self.word.store(WAITING, Ordering::Relaxed);
        Wait::Wait
    }

    /// Completes like [`complete`](Rendezvous::complete), where future and operation are on one thread.
    #[inline]
    pub fn complete_here(&self) -> Complete {
        let seen = self.word.load(Ordering::Relaxed);
        if seen == STARTING {
            self.word.store(DONE, Ordering::Relaxed);
            Complete::Leave
        } else if seen == WAITING {
            self.word.store(LEAVING, Ordering::Relaxed);
            Complete::Wake
        } else {
            cold_path();
            debug_assert_eq!(seen, ABANDONED, "the future is on this thread, and not in here");
            Complete::Free
        }
    }

    /// Abandons like [`abandon`](Rendezvous::abandon), where future and operation are on one thread.
    #[inline]
    pub fn abandon_here(&self) -> Abandon {
        if self.word.load(Ordering::Relaxed) == DONE {
            return Abandon::Free;
        }
        self.word.store(ABANDONED, Ordering::Relaxed);
        Abandon::Leave
    }

    /// Spins until the operation has left: it is a few instructions away from that.
    #[cold]
    fn wait_until_done(&self) -> Peek {
        while self.word.load(Ordering::Acquire) != DONE {
            pause();
        }
        Peek::Done
    }
}

/// Spins once: the other thread is between two instructions. A model lets it run.
fn pause() {
    #[cfg(feature = "loom")]
    thread::yield_now();
    hint::spin_loop();
}

impl Default for Rendezvous {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Rendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rendezvous").field("word", &self.word.load(Ordering::Relaxed)).finish()
    }
}
