//! The rendezvous of an awaiting future with the operation it awaits: who comes first, who goes on, who frees. One word, one
//! file, no unsafe; the transitions say what the caller must now do.
//!
//! | the word | means |
//! | --- | --- |
//! | `STARTING` | the operation is being started; nobody waits yet |
//! | `WAITING` | the future waits, its waker is in its place; whoever leaves this state has the waker |
//! | `CHANGING` | the future puts another waker in place |
//! | `LEAVING` | the outcome is there; the operation takes the waker and then says `DONE` |
//! | `DONE` | the outcome is there, and the future has all to itself |
//! | `ABANDONED` | the future is gone; the operation frees everything when it completes |

use core::fmt;
use core::hint;

use crate::sync::atomic::{AtomicU8, Ordering};
#[cfg(feature = "loom")]
use crate::sync::thread;

const STARTING: u8 = 0;
const WAITING: u8 = 1;
const CHANGING: u8 = 2;
const LEAVING: u8 = 3;
const DONE: u8 = 4;
const ABANDONED: u8 = 5;

/// See the head of this file.
pub struct Rendezvous {
    word: AtomicU8,
}

/// What the future does after it has started the operation, or changed its waker.
#[derive(Debug, PartialEq, Eq)]
pub enum Wait {
    /// It returns `Pending`; its waker will be called.
    Wait,
    /// It takes the outcome; its waker is still its own.
    Done,
}

/// What a future finds that is polled again.
#[derive(Debug, PartialEq, Eq)]
pub enum Peek {
    /// Not done. The waker may be changed: then the waker is ours until [`Rendezvous::changed`].
    NotYet,
    /// It takes the outcome.
    Done,
}

/// What the operation does with the outcome that it has put in its place.
#[derive(Debug, PartialEq, Eq)]
pub enum Complete {
    /// Nothing more: the one who starts it will see it, or has seen it.
    Leave,
    /// It takes the waker, calls [`Rendezvous::left`] and then the waker.
    Wake,
    /// Nobody is there any more: it frees everything.
    Free,
}

/// What a future that is dropped does.
#[derive(Debug, PartialEq, Eq)]
pub enum Abandon {
    /// Nothing: the operation frees everything when it completes.
    Leave,
    /// It frees everything: the operation has completed.
    Free,
}

impl Rendezvous {
    /// Nobody is here.
    #[inline]
    pub fn new() -> Self {
        Self { word: AtomicU8::new(STARTING) }
    }

    /// The future has started the operation: has it completed already? Otherwise the future puts its waker in place and calls
    /// [`wait`](Rendezvous::wait).
    #[inline]
    pub fn completed_at_once(&self) -> bool {
        self.is_done()
    }

    /// Whether the outcome is there and the operation gone, for a look that changes nothing.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.word.load(Ordering::Acquire) == DONE
    }

    /// The future waits; its waker is in place.
    #[inline]
    pub fn wait(&self) -> Wait {
        match self.word.compare_exchange(STARTING, WAITING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Wait::Wait,
            Err(_) => Wait::Done,
        }
    }

    /// The future is polled again.
    #[inline]
    pub fn peek(&self) -> Peek {
        match self.word.load(Ordering::Acquire) {
            DONE => Peek::Done,
            LEAVING => self.see_off(),
            _ => Peek::NotYet,
        }
    }

    /// The future wants to put another waker in place. `Done`: it is too late, and not needed.
    pub fn change(&self) -> Peek {
        match self.word.compare_exchange(WAITING, CHANGING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Peek::NotYet,
            Err(DONE) => Peek::Done,
            Err(_) => self.see_off(),
        }
    }

    /// The other waker is in place.
    pub fn changed(&self) {
        self.word.store(WAITING, Ordering::Release);
    }

    /// The operation has put the outcome in its place.
    #[inline]
    pub fn complete(&self) -> Complete {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            if seen == CHANGING || seen == ABANDONED {
                // Looked at again by the exchange, in the right order.
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

    /// The operation has taken the waker, and touches nothing any more.
    #[inline]
    pub fn left(&self) {
        self.word.store(DONE, Ordering::Release);
    }

    /// The future is dropped; it has asked the operation to stop before.
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

    /// As [`wait`](Rendezvous::wait), where both sides are on one thread.
    #[inline]
    pub fn wait_here(&self) -> Wait {
        if self.word.load(Ordering::Relaxed) == DONE {
            return Wait::Done;
        }
        self.word.store(WAITING, Ordering::Relaxed);
        Wait::Wait
    }

    /// As [`complete`](Rendezvous::complete), where both sides are on one thread.
    #[inline]
    pub fn complete_here(&self) -> Complete {
        match self.word.load(Ordering::Relaxed) {
            ABANDONED => Complete::Free,
            WAITING => {
                self.word.store(LEAVING, Ordering::Relaxed);
                Complete::Wake
            }
            _ => {
                self.word.store(DONE, Ordering::Relaxed);
                Complete::Leave
            }
        }
    }

    /// As [`abandon`](Rendezvous::abandon), where both sides are on one thread.
    #[inline]
    pub fn abandon_here(&self) -> Abandon {
        if self.word.load(Ordering::Relaxed) == DONE {
            return Abandon::Free;
        }
        self.word.store(ABANDONED, Ordering::Relaxed);
        Abandon::Leave
    }

    /// The operation is on its last few instructions.
    #[cold]
    fn see_off(&self) -> Peek {
        while self.word.load(Ordering::Acquire) != DONE {
            pause();
        }
        Peek::Done
    }
}

/// The other side is between two instructions. A model lets it go on.
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
