//! The queue of posted work of a run loop, a strand and a pool. Its whole state is one word: a stack of posted
//! work, newest first, or one of three marks. Many threads push; one thread at a time, the *taker*, takes.
//! The taker of a run loop is its thread. That of a pool holds a lock. The taker of a strand is the thread that has the strand's turn; it
//! counts as asleep while the turn is free.
//!
//! | word | meaning |
//! | --- | --- |
//! | null | empty; the taker is awake |
//! | a header | the newest posted work |
//! | `ASLEEP` | empty; the taker sleeps or is about to sleep, and must be woken |
//! | `CLOSED` | the taker is gone; nothing is taken any more |
//!
//! 1. The inbox holds the runnables of the stack, as headers that are linked newest first. `push` gives it
//!    one; the exchange of the word takes all.

#![allow(unsafe_code)]

use core::ptr;

use convoke_core::raw::sync::atomic::{AtomicPtr, Ordering};
use convoke_core::raw::{Header, RunQueue, Runnable};

/// A multi-producer, single-consumer stack that is taken as a whole, oldest first.
pub(crate) struct Inbox {
    newest: AtomicPtr<Header>,
}

/// Tells the pusher what it must do now.
pub(crate) enum Pushed {
    /// Nothing.
    Queued,
    /// Wake the taker: it sleeps.
    WakeSleeper,
    /// Stop this work: the inbox is closed.
    Closed(Runnable),
}

/// Marks. Headers are aligned, so no header has one of these addresses.
const ASLEEP: *mut Header = ptr::without_provenance_mut(1);
const CLOSED: *mut Header = ptr::without_provenance_mut(2);

/// Returns true if the word is null or a mark, and so points to no work.
#[inline]
fn is_no_work(newest: *mut Header) -> bool {
    newest.addr() <= CLOSED.addr()
}

impl Inbox {
    /// Creates an empty inbox whose taker is awake.
    pub(crate) fn new() -> Self {
        Self { newest: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Creates an empty inbox whose taker is asleep.
    pub(crate) fn asleep() -> Self {
        Self { newest: AtomicPtr::new(ASLEEP) }
    }

    /// Pushes a piece of work. Any thread may call it.
    #[inline]
    pub(crate) fn push(&self, runnable: Runnable) -> Pushed {
        let header = runnable.address().as_ptr();
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            if newest == CLOSED {
                // Acquire, with the release in `close`: the pusher sees what the closer did before, for
                // example that it closed the owner thread. A load and not a fence: ThreadSanitizer does not
                // understand fences.
                self.newest.load(Ordering::Acquire);
                return Pushed::Closed(runnable);
            }
            let next = if newest == ASLEEP { ptr::null_mut() } else { newest };
            // SAFETY: the word is null, a mark or the address of a header, and `next` is not a mark: `CLOSED`
            // was handled above.
            unsafe { runnable.set_link(next) };
            match self.newest.compare_exchange_weak(
                newest,
                header,
                // Acquire, with the release in `fall_asleep`: if this takes the turn of a strand,
                // we see what was done in the turn before.
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(before) => {
                    // Rule 1: the inbox holds it from here on.
                    let _ = runnable.into_raw();
                    return if before == ASLEEP { Pushed::WakeSleeper } else { Pushed::Queued };
                }
                Err(now) => newest = now,
            }
        }
    }

    /// Takes all work, oldest first. Only the taker may call it. If there is none, a taker that is marked as
    /// asleep stays marked: it may call this from inside its sleep, or while its loop dozes.
    pub(crate) fn take(&self) -> RunQueue {
        if self.is_empty_now() {
            return RunQueue::new();
        }
        // If another taker comes in between, which only misuse of `raw::Turns` can cause, it costs no more
        // than a mark.
        self.exchange(ptr::null_mut(), Ordering::Acquire)
    }

    /// Replaces the word by a mark or null, and returns the work that was there.
    fn exchange(&self, mark: *mut Header, ordering: Ordering) -> RunQueue {
        let newest = self.newest.swap(mark, ordering);
        if is_no_work(newest) {
            return RunQueue::new();
        }
        // SAFETY: rule 1: the inbox held each header of the stack, and the swap has removed all of them.
        unsafe { RunQueue::from_newest_first(newest) }
    }

    /// Marks the taker as asleep, unless there is work. Returns true if it is asleep now. Only the taker may
    /// call it. Release: a thread that wakes the taker by a push, or takes the next turn, sees what the taker
    /// did before.
    pub(crate) fn fall_asleep(&self) -> bool {
        matches!(
            self.newest.compare_exchange(ptr::null_mut(), ASLEEP, Ordering::Release, Ordering::Relaxed),
            Ok(_) | Err(ASLEEP)
        )
    }

    /// Marks a sleeping taker as awake, without pushing work. Returns true if it was asleep. Release: the
    /// taker sees what the caller did before.
    pub(crate) fn wake_up(&self) -> bool {
        self.newest.compare_exchange(ASLEEP, ptr::null_mut(), Ordering::Release, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.newest.load(Ordering::Acquire) == ASLEEP
    }

    /// Returns true if it holds no work at this moment. Relaxed: orders nothing.
    #[inline]
    pub(crate) fn is_empty_now(&self) -> bool {
        is_no_work(self.newest.load(Ordering::Relaxed))
    }

    /// Returns true if it holds no work.
    pub(crate) fn is_empty(&self) -> bool {
        is_no_work(self.newest.load(Ordering::Acquire))
    }

    /// Returns true if it is open and empty, and its taker is awake.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.newest.load(Ordering::Acquire).is_null()
    }

    /// Closes it for good and takes what is in it.
    pub(crate) fn close(&self) -> RunQueue {
        self.exchange(CLOSED, Ordering::AcqRel)
    }
}
