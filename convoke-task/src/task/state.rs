//! The state machine of a task: which thread may run it, what was asked of it, and how many references there
//! are. No unsafe code. Every transition returns what its caller must do next. Model-checked on its own.
//!
//! There are two words, because there are two kinds of tasks:
//! - An *owned* task runs on an executor with one thread. That owner thread alone changes `own`, by plain
//!   loads and stores. Other threads, which are *remote*, set bits of `remote` and send a remote wake; the
//!   owner thread receives it and acts on the bits.
//! - Every other task is *shared*: all threads change `own`, atomically, and `remote` is not used, except for
//!   the references of a task that moved from its owner thread.
//!
//! References (wakers, handles, and one for the task itself until it has left) of an owned task are counted
//! in both words: those added or dropped on the owner thread in `own`, the others in `remote`. Each count may
//! fall below zero; the sum is the number of references. When the task leaves, the count of `own` is added to
//! `remote` (`MERGED`), and from then on `remote` counts alone.
//!
//! | bit of `own` | meaning |
//! | --- | --- |
//! | `QUEUED` | there is a runnable; its holder runs the task, or refuses to |
//! | `RUNNING` | a thread is inside the task |
//! | `WOKEN` | the task was woken while it ran, and is to be posted again |
//! | `STOP` | a stop was requested |
//! | `DONE` | the future is gone, and the task will not run again |
//! | `MERGED` | references are counted in `remote` alone |
//! | `HANDLE` | there is a handle that stays on the owner thread; not counted until references are merged |
//! | `LEFT_HERE` | the task has left, and only that handle refers to it |
//!
//! | bit of `remote` | meaning |
//! | --- | --- |
//! | `REMOTE_WAKE` | a remote wake is in flight; the task does not leave before it was received |
//! | `STOP_REMOTE` | a stop was requested by a remote thread |
//! | `REFUSED` | the runnable was dropped on a remote thread |
//! | `LEAVING` | the task is to leave and waits for the remote wake; its receiver lets it leave |
//! | `LEFT` | the task has left; a remote wake would have no effect |
//! | `LISTENED` | the cold state has a list of scopes that hear of a stop: see `state/listened.rs` |

mod listened;
mod local_handle;
mod own_wake;

use core::fmt;
use core::hint::cold_path;

use convoke_core::raw::abort_with;
use convoke_core::raw::sync::atomic::{AtomicU32, Ordering};

const QUEUED: u32 = 1;
const RUNNING: u32 = 1 << 1;
const WOKEN: u32 = 1 << 2;
const STOP: u32 = 1 << 3;
const DONE: u32 = 1 << 4;
const MERGED: u32 = 1 << 5;
const HANDLE: u32 = 1 << 6;
const LEFT_HERE: u32 = 1 << 7;
const REFERENCE: u32 = 1 << 8;
/// The number of references at which wakers are no longer counted here, but in `many_wakers`.
const MOST_WAKERS: i32 = 1 << 22;
/// The largest number of references. Those that are no wakers are few: handles, and one a thread at most.
const MOST_REFERENCES: i32 = (1 << 23) - (1 << 12);
/// The distance from zero at which the count of `own` is settled with that of `remote`.
const MOST_UNSETTLED: i32 = 1 << 20;

const REMOTE_WAKE: u32 = 1;
const LEAVING: u32 = 1 << 1;
const REFUSED: u32 = 1 << 2;
/// Has the number of `STOP`, so that one test of both words finds either.
const STOP_REMOTE: u32 = STOP;
const LEFT: u32 = 1 << 4;
const LISTENED: u32 = 1 << 5;
const REMOTE_REFERENCE: u32 = 1 << 8;

/// The way in which the calling thread accesses a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The task is shared.
    Shared,
    /// The task is owned, and this is its owner thread.
    Local,
    /// The task is owned, and this is another thread.
    Remote,
}

/// The state of one task.
pub struct State {
    own: AtomicU32,
    remote: AtomicU32,
}

/// The duty of the caller that woke a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Wake {
    /// Nothing.
    Nothing,
    /// Create the runnable and post it.
    Post,
    /// Send the remote wake.
    Send,
}

/// The duty of the caller whose poll left the task waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum AfterPause {
    /// Nothing: the task may be running on another thread by now, or be gone.
    Idle,
    /// Create the runnable and post it: the task was woken meanwhile.
    Post,
}

/// The way in which a task leaves its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Leave {
    /// Nothing else refers to the task, except for a handle on the owner thread: tell the parent; then free the
    /// task, or call [`State::left_to_handle`] if it was made with such a handle. If the parent says that it let
    /// others refer to the task meanwhile, see [`State::leave_after_all`].
    Alone,
    /// Others may refer to the task: tell the parent and drop the task's own reference.
    Counted,
    /// Nothing now: a remote wake is in flight, and its receiver is told to let the task leave.
    Later,
}

/// The contents of a remote wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// True if the runnable was dropped on a remote thread: it is the receiver's now.
    pub refused: bool,
    /// True if the task waited for this to leave: the receiver lets it leave.
    pub leaving: bool,
}

impl State {
    /// Creates the state of a queued task with `references` references besides its own.
    #[inline]
    pub fn queued(references: u32) -> Self {
        Self { own: AtomicU32::new(QUEUED + REFERENCE * (1 + references)), remote: AtomicU32::new(0) }
    }

    /// Creates the state of a queued task that is owned, with a handle that stays on the owner thread.
    #[inline]
    pub fn queued_with_handle() -> Self {
        Self { own: AtomicU32::new(QUEUED + HANDLE + REFERENCE), remote: AtomicU32::new(0) }
    }

    /// Returns true if a stop was requested.
    #[inline]
    pub fn stop_asked(&self) -> bool {
        (self.own.load(Ordering::Acquire) | self.remote.load(Ordering::Acquire)) & STOP != 0
    }

    /// Returns true if the task runs now: a snapshot for inspectors.
    pub fn is_running(&self) -> bool {
        self.own.load(Ordering::Relaxed) & RUNNING != 0
    }

    /// Returns true if the task is queued or a remote wake will queue it: a snapshot for inspectors.
    pub fn is_queued(&self) -> bool {
        self.own.load(Ordering::Relaxed) & QUEUED != 0
            || self.remote.load(Ordering::Relaxed) & REMOTE_WAKE != 0
    }

    /// Wakes the task.
    #[inline]
    pub fn wake(&self, access: Access) -> Wake {
        self.wake_with(access, 0, 0)
    }

    /// Requests a stop, and wakes the task.
    pub fn ask_stop(&self, access: Access) -> Wake {
        self.wake_with(access, STOP, STOP_REMOTE)
    }

    /// Refuses the runnable on a remote thread: the owner thread must end the task.
    pub fn refuse_remotely(&self) -> Wake {
        self.set_remote_bits(REFUSED)
    }

    #[inline]
    fn wake_with(&self, access: Access, own: u32, remote: u32) -> Wake {
        match access {
            Access::Remote => self.set_remote_bits(remote),
            Access::Local => {
                let (next, wake) = woken(self.own.load(Ordering::Relaxed) | own);
                self.own.store(next, Ordering::Relaxed);
                wake
            }
            Access::Shared => {
                let mut wake = Wake::Nothing;
                self.change(|word| {
                    let (next, then) = woken(word | own);
                    wake = then;
                    next
                });
                wake
            }
        }
    }

    /// Sets bits of `remote` for the owner thread.
    fn set_remote_bits(&self, word: u32) -> Wake {
        let before = self.remote.fetch_or(REMOTE_WAKE | word, Ordering::AcqRel);
        if before & (REMOTE_WAKE | LEFT) == 0 { Wake::Send } else { Wake::Nothing }
    }

    /// Receives the remote wake, on the owner thread or where the task moved to since.
    pub fn open(&self) -> Opened {
        let before = self.remote.fetch_and(!(REMOTE_WAKE | REFUSED | LEAVING), Ordering::AcqRel);
        Opened { refused: before & REFUSED != 0, leaving: before & LEAVING != 0 }
    }

    /// Enters the task as the holder of its runnable. `access` is not `Remote`. Returns true if a stop was
    /// requested by then.
    #[inline]
    pub fn begin(&self, access: Access) -> bool {
        // Acquire: the thread that was inside before released it in `pause`.
        let before = self.change_own(access, |word| word & !QUEUED | RUNNING);
        (before | self.remote.load(Ordering::Acquire)) & STOP != 0
    }

    /// Leaves the inside of a task that goes on waiting after a poll.
    #[inline]
    pub fn pause(&self, access: Access) -> AfterPause {
        let before = self.change_own(access, |word| {
            let queued = if word & WOKEN != 0 { QUEUED } else { 0 };
            word & !(RUNNING | WOKEN) | queued
        });
        if before & WOKEN != 0 { AfterPause::Post } else { AfterPause::Idle }
    }

    /// Returns true if the future is gone.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.own.load(Ordering::Acquire) & DONE != 0
    }

    /// Adds a reference.
    #[inline]
    pub fn add_reference(&self, access: Access) {
        if !self.add_up_to(MOST_REFERENCES, access) {
            too_many();
        }
    }

    /// Adds a reference for a waker. Returns false if there are too many: the caller, which has one itself,
    /// then counts the new one in `many_wakers`.
    #[inline]
    #[must_use]
    pub fn try_add_waker(&self, access: Access) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        if access == Access::Local && own & MERGED == 0 && count(own) <= MOST_UNSETTLED {
            self.own.store(own.wrapping_add(REFERENCE), Ordering::Relaxed);
            return true;
        }
        self.try_add_counted_waker(access)
    }

    #[inline(never)]
    fn try_add_counted_waker(&self, access: Access) -> bool {
        self.add_up_to(MOST_WAKERS, access)
    }

    #[inline]
    fn add_up_to(&self, most: i32, access: Access) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        if access == Access::Remote || own & MERGED != 0 {
            add_to(&self.remote, most)
        } else if access == Access::Local {
            if count(own) > MOST_UNSETTLED {
                return self.settle_and_add(most);
            }
            self.own.store(own.wrapping_add(REFERENCE), Ordering::Relaxed);
            true
        } else {
            add_to(&self.own, most)
        }
    }

    #[cold]
    fn settle_and_add(&self, most: i32) -> bool {
        let (own, remote) = (self.own.load(Ordering::Relaxed), self.remote.load(Ordering::Relaxed));
        if count(own) + count(remote) > most {
            return false;
        }
        self.settle();
        self.own.store(self.own.load(Ordering::Relaxed).wrapping_add(REFERENCE), Ordering::Relaxed);
        true
    }

    /// Moves all but one reference of `own` to `remote`, on the owner thread. A waker that is created on the
    /// owner thread and dropped on another counts up in one word and down in the other; in a long-lived task
    /// each count would overflow, though their sum is small.
    #[cold]
    fn settle(&self) {
        let own = self.own.load(Ordering::Relaxed);
        let others = count(own) - 1;
        self.own.store(own % REFERENCE + REFERENCE, Ordering::Relaxed);
        let change = others.cast_unsigned().wrapping_mul(REMOTE_REFERENCE);
        self.remote.fetch_add(change, Ordering::AcqRel);
    }

    /// Drops a reference. Returns true if it was the last: the caller frees the task.
    #[inline]
    #[must_use]
    pub fn drop_reference(&self, access: Access) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        if access == Access::Remote || own & MERGED != 0 {
            let remote = self.remote.load(Ordering::Acquire);
            if remote & LEFT != 0 && remote / REMOTE_REFERENCE == 1 {
                // The caller's is the only one: no other thread can change the count.
                return true;
            }
            let before = self.remote.fetch_sub(REMOTE_REFERENCE, Ordering::AcqRel);
            before & LEFT != 0 && before < 2 * REMOTE_REFERENCE
        } else if access == Access::Local {
            // The task has not left, or it would be merged; so its own reference is still counted.
            self.own.store(own.wrapping_sub(REFERENCE), Ordering::Relaxed);
            if count(own) < -MOST_UNSETTLED {
                self.settle();
            }
            false
        } else {
            self.own.fetch_sub(REFERENCE, Ordering::AcqRel) < 2 * REFERENCE
        }
    }

    /// Wakes the task and drops a reference in one step, on the owner thread. Returns `None`, and does
    /// nothing, if references are merged or have to be settled.
    #[inline]
    #[must_use]
    pub fn wake_and_drop_locally(&self) -> Option<Wake> {
        let own = self.own.load(Ordering::Relaxed);
        if own & MERGED != 0 {
            cold_path();
            return None;
        }
        if count(own) < -MOST_UNSETTLED {
            cold_path();
            return None;
        }
        let (next, wake) = woken(own);
        self.own.store(next.wrapping_sub(REFERENCE), Ordering::Relaxed);
        Some(wake)
    }

    /// Lets a task leave that has ended and waited for a remote wake. `access` is not `Remote`. The task's
    /// own reference is still counted afterwards.
    #[inline]
    pub fn leave(&self, access: Access) -> Leave {
        self.leave_at(access, self.own.load(Ordering::Acquire))
    }

    /// Ends the task from inside, after the future is gone: no thread enters it again, and it leaves.
    /// Otherwise as [`leave`](State::leave).
    #[inline]
    pub fn finish_and_leave(&self, access: Access) -> Leave {
        let done = |word| word & !(RUNNING | WOKEN) | DONE;
        // The word as it was then. References that were dropped since are still counted in it, and to leave
        // as `Counted` is always right.
        let before = self.change_own(access, done);
        self.leave_at(access, done(before))
    }

    #[inline]
    fn leave_at(&self, access: Access, own: u32) -> Leave {
        if own & MERGED == 0 {
            let only_own = own / REFERENCE == 1;
            if access == Access::Shared {
                return if only_own { Leave::Alone } else { Leave::Counted };
            }
            // Nothing else knows the task, so no other thread can be about to.
            if only_own && self.remote.load(Ordering::Acquire) & !LISTENED == 0 {
                return Leave::Alone;
            }
        }
        self.leave_counted(own)
    }

    /// Lets a task leave that was told to leave `Alone`, although its parent let others refer to it before it was
    /// told. Never returns `Alone`. `access` is not `Remote`.
    #[cold]
    pub fn leave_after_all(&self, access: Access) -> Leave {
        let own = self.own.load(Ordering::Acquire);
        if own & MERGED == 0 && access == Access::Shared {
            return Leave::Counted;
        }
        self.leave_counted(own)
    }

    #[cold]
    fn leave_counted(&self, own: u32) -> Leave {
        let handle = u32::from(own & HANDLE != 0);
        let brought = if own & MERGED != 0 { 0 } else { (own / REFERENCE).wrapping_add(handle) };
        let mut remote = self.remote.load(Ordering::Acquire);
        loop {
            let next = if remote & REMOTE_WAKE != 0 {
                remote | LEAVING
            } else {
                (remote | LEFT).wrapping_add(brought.wrapping_mul(REMOTE_REFERENCE))
            };
            match self.remote.compare_exchange_weak(remote, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if next & LEAVING != 0 => return Leave::Later,
                Ok(_) => break,
                Err(now) => remote = now,
            }
        }
        if own & MERGED == 0 {
            // The owner thread alone writes `own`.
            self.own.store((own % REFERENCE) & !HANDLE | MERGED, Ordering::Relaxed);
        }
        Leave::Counted
    }

    /// Makes a running owned task shared: it is about to move to another executor. Its references are counted
    /// in `remote` from here on, where every thread can change them.
    pub fn move_out(&self) {
        let own = self.own.load(Ordering::Relaxed);
        if own & MERGED == 0 {
            self.remote.fetch_add((own / REFERENCE).wrapping_mul(REMOTE_REFERENCE), Ordering::AcqRel);
            self.own.store((own % REFERENCE) | MERGED, Ordering::Release);
        }
    }

    /// Changes `own`, by the means that `access` allows; returns the old word.
    #[inline]
    fn change_own(&self, access: Access, change: impl Fn(u32) -> u32) -> u32 {
        if access == Access::Local {
            let before = self.own.load(Ordering::Relaxed);
            self.own.store(change(before), Ordering::Relaxed);
            before
        } else {
            self.change(change)
        }
    }

    #[inline]
    fn change(&self, mut change: impl FnMut(u32) -> u32) -> u32 {
        let mut before = self.own.load(Ordering::Relaxed);
        loop {
            let next = change(before);
            match self.own.compare_exchange_weak(before, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return before,
                Err(now) => before = now,
            }
        }
    }
}

/// Returns the number of references counted in a word. It is negative if more were dropped there than added.
#[inline]
fn count(word: u32) -> i32 {
    word.cast_signed() >> REFERENCE.trailing_zeros()
}

/// Adds a reference to a word that several threads change, unless it has more than `most`.
#[inline]
fn add_to(word: &AtomicU32, most: i32) -> bool {
    const { assert!(REFERENCE == REMOTE_REFERENCE) };
    if count(word.fetch_add(REFERENCE, Ordering::Relaxed)) <= most {
        return true;
    }
    // Not the last one: the caller has another.
    word.fetch_sub(REFERENCE, Ordering::Relaxed);
    false
}

/// Returns the word of a task that is woken, and what to do about it.
#[inline]
fn woken(word: u32) -> (u32, Wake) {
    if word & (DONE | QUEUED | WOKEN) != 0 {
        (word, Wake::Nothing)
    } else if word & RUNNING != 0 {
        (word | WOKEN, Wake::Nothing)
    } else {
        (word | QUEUED, Wake::Post)
    }
}

/// Aborts, as `Arc` does: a program that leaks this many references cannot go on. Wakers do not come here.
#[cold]
fn too_many() -> ! {
    abort_with(&"more references to one task than can be counted; handles are being leaked. Aborting.")
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (own, remote) = (self.own.load(Ordering::Relaxed), self.remote.load(Ordering::Relaxed));
        f.debug_struct("State")
            .field("own", &format_args!("{own:#x}"))
            .field("remote", &format_args!("{remote:#x}"))
            .finish()
    }
}
