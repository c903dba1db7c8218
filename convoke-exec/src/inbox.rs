//! The state machine of a run loop and of a strand, in one word: a stack of posted work, newest first, or one of three
//! marks. Many threads push, one takes. The taker of a run loop is its thread; that of a strand is whoever has its turn,
//! and it "sleeps" while the turn is free.
//!
//! | the word | means |
//! | --- | --- |
//! | null | empty; the taker is awake |
//! | a header | the newest of the posted work |
//! | `ASLEEP` | empty; the taker sleeps, or is about to, and must be woken |
//! | `CLOSED` | the taker is gone; nothing is taken any more |

#![allow(unsafe_code)]

use core::ptr;

use convoke_core::raw::sync::atomic::{AtomicPtr, Ordering};
use convoke_core::raw::{Header, RunQueue, Runnable};

pub(crate) struct Inbox {
    newest: AtomicPtr<Header>,
}

/// What the pusher must do now.
pub(crate) enum Pushed {
    /// Nothing.
    Queued,
    /// Wake the taker: it sleeps.
    WakeSleeper,
    /// Drop it: the inbox is closed.
    Closed(Runnable),
}

/// No header is at these addresses: headers are aligned.
const ASLEEP: *mut Header = ptr::without_provenance_mut(1);
const CLOSED: *mut Header = ptr::without_provenance_mut(2);

/// Returns true if the word is null or a mark, and so leads to no work.
#[inline]
fn is_no_work(newest: *mut Header) -> bool {
    newest.addr() <= CLOSED.addr()
}

impl Inbox {
    /// Empty, with its taker awake.
    pub(crate) fn new() -> Self {
        Self { newest: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Empty, with its taker asleep.
    pub(crate) fn asleep() -> Self {
        Self { newest: AtomicPtr::new(ASLEEP) }
    }

    /// Adds a piece of work.
    #[inline]
    pub(crate) fn push(&self, runnable: Runnable) -> Pushed {
        let header = runnable.into_raw();
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            if newest == CLOSED {
                // Acquire, with the release in `close`: the pusher sees what was done before, for one that the home is
                // closed. A load and not a fence: ThreadSanitizer does not know those.
                self.newest.load(Ordering::Acquire);
                // SAFETY: it came from `into_raw` just now.
                return Pushed::Closed(unsafe { Runnable::from_raw(header) });
            }
            let next = if newest == ASLEEP { ptr::null_mut() } else { newest };
            // SAFETY: we hold the runnable until the exchange below gives it to the taker.
            unsafe { Runnable::set_link(header, next) };
            match self.newest.compare_exchange_weak(
                newest,
                header.as_ptr(),
                // Acquire, with the release in `fall_asleep`: the turn of a strand is ours then, and we see what was done in
                // the last one.
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(ASLEEP) => return Pushed::WakeSleeper,
                Ok(_) => return Pushed::Queued,
                Err(now) => newest = now,
            }
        }
    }

    /// Takes all, oldest first. Only the taker calls this. A taker that is marked as asleep stays so if there is nothing: it
    /// may come here from inside of its sleep, or while its loop dozes.
    pub(crate) fn take(&self) -> RunQueue {
        if is_no_work(self.newest.load(Ordering::Relaxed)) {
            return RunQueue::new();
        }
        let newest = self.newest.swap(ptr::null_mut(), Ordering::Acquire);
        if is_no_work(newest) {
            // A second taker was here in between, which only misuse of `raw::Turns` can bring about. It merely costs a mark.
            return RunQueue::new();
        }
        // SAFETY: the chain was pushed by `push`, which gave up the runnables.
        unsafe { RunQueue::from_newest_first(newest) }
    }

    /// Marks the taker as asleep, unless there is something to take; true if it is asleep now. Only the taker calls this.
    /// Release: whoever wakes it by a push, or has the next turn, sees what it has done.
    pub(crate) fn fall_asleep(&self) -> bool {
        matches!(
            self.newest.compare_exchange(ptr::null_mut(), ASLEEP, Ordering::Release, Ordering::Relaxed),
            Ok(_) | Err(ASLEEP)
        )
    }

    /// Marks a taker that sleeps as awake, without a piece of work; says whether it was asleep. Release: it sees what was
    /// done before.
    pub(crate) fn wake_up(&self) -> bool {
        self.newest.compare_exchange(ASLEEP, ptr::null_mut(), Ordering::Release, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.newest.load(Ordering::Acquire) == ASLEEP
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        is_no_work(self.newest.load(Ordering::Acquire))
    }

    /// Whether it is open, empty, and its taker awake.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.newest.load(Ordering::Acquire).is_null()
    }

    /// Closes it for ever and takes what was in it.
    pub(crate) fn close(&self) -> RunQueue {
        let newest = self.newest.swap(CLOSED, Ordering::AcqRel);
        if is_no_work(newest) {
            return RunQueue::new();
        }
        // SAFETY: the chain was pushed by `push`, which gave up the runnables.
        unsafe { RunQueue::from_newest_first(newest) }
    }
}
