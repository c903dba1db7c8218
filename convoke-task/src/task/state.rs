//! The state of a task: who may run it, who has asked for what, and who still refers to it. No unsafe; every transition
//! says what the caller must now do. Model-checked on its own.
//!
//! There are two words because there are two kinds of tasks.
//! - A task that *lives at home*, on an executor with one thread, is changed by that thread alone, by plain loads and
//!   stores of `own`. Other threads, who are *remote*, leave word in `remote` and send a letter; the thread at home acts on it.
//! - All others are *shared*: everybody changes `own`, atomically, and `remote` is not used.
//!
//! References (wakers and handles, and one for the task itself until it has left) are counted in both words of a
//! task at home: those made or dropped at home in `own`, the others in `remote`, which may run below zero meanwhile; the
//! sum counts. When the task leaves, `own`'s part is added to `remote` (`MERGED`), and from then on that one counts alone.
//!
//! | bit of `own` | means |
//! | --- | --- |
//! | `QUEUED` | there is a runnable for it: whoever holds it runs the task, or refuses to |
//! | `RUNNING` | somebody is inside it |
//! | `WOKEN` | it was woken while it ran, and is queued again |
//! | `STOP` | it was asked to stop |
//! | `DONE` | its body is gone and it will not be run again |
//! | `MERGED` | references are counted in `remote` alone |
//! | `HANDLE` | there is a handle that does not leave its home. It is not counted until references are merged |
//! | `LEFT_HERE` | the task has left, and that handle alone refers to it |
//!
//! | bit of `remote` | means |
//! | --- | --- |
//! | `REMOTE_WAKE` | a letter is on its way: the task does not leave before it has been opened |
//! | `STOP_REMOTE` | it was asked to stop from elsewhere |
//! | `REFUSED` | its runnable was dropped elsewhere |
//! | `LEAVING` | the task wanted to leave and had to wait for the letter: whoever opens it goes on with that |
//! | `LEFT` | the task has left, and letters are pointless |

use core::fmt;

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
/// As many references are counted in here for wakers; more of them are counted elsewhere.
const MOST_WAKERS: i32 = 1 << 22;
/// As many references are counted in here at all. Those that are no wakers are few: handles, and one a thread for a moment.
const MOST_REFERENCES: i32 = (1 << 23) - (1 << 12);
/// How far the count at home may be off before it is settled with the other.
const MOST_UNSETTLED: i32 = 1 << 20;

const REMOTE_WAKE: u32 = 1;
const STOP_REMOTE: u32 = 1 << 1;
const REFUSED: u32 = 1 << 2;
const LEAVING: u32 = 1 << 3;
const LEFT: u32 = 1 << 4;
const REMOTE_REFERENCE: u32 = 1 << 8;

/// From where a task is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The task is shared.
    Shared,
    /// The task lives at home, and this thread is there.
    Local,
    /// The task lives at home, and this thread is elsewhere.
    Remote,
}

/// The state of one task.
pub struct State {
    own: AtomicU32,
    remote: AtomicU32,
}

/// What to do about a task that was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Wake {
    /// Nothing.
    Nothing,
    /// Make the runnable and post it.
    Post,
    /// Send the letter.
    Send,
}

/// What to do after a poll that left the task waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pause {
    /// Nothing: it may run elsewhere by now, or be gone.
    Idle,
    /// It was woken meanwhile: make the runnable and post it.
    Post,
}

/// How a task leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Leave {
    /// Nobody else refers to it: tell the parent and free it; or, if the parent says that it has let somebody else refer to it
    /// meanwhile, see [`State::leave_after_all`].
    Alone,
    /// Others may refer to it: tell the parent and drop the task's own reference.
    Counted,
    /// Only a handle at home refers to it: tell the parent and call [`State::left_to_handle`].
    Here,
    /// A letter is on its way: whoever opens it is told to go on.
    Later,
}

/// What a letter said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The runnable was dropped elsewhere, and is the reader's now.
    pub refused: bool,
    /// The task waited for this to leave: the reader goes on with that.
    pub leaving: bool,
}

impl State {
    /// A task that is queued, with so many references besides its own.
    #[inline]
    pub fn queued(references: u32) -> Self {
        Self { own: AtomicU32::new(QUEUED + REFERENCE * (1 + references)), remote: AtomicU32::new(0) }
    }

    /// A task at home that is queued, with a handle that does not leave it.
    #[inline]
    pub fn queued_with_handle() -> Self {
        Self { own: AtomicU32::new(QUEUED + HANDLE + REFERENCE), remote: AtomicU32::new(0) }
    }

    /// Whether it was asked to stop.
    #[inline]
    pub fn stop_asked(&self) -> bool {
        self.own.load(Ordering::Acquire) & STOP != 0 || self.remote.load(Ordering::Acquire) & STOP_REMOTE != 0
    }

    /// Whether it is running now, for people who look.
    pub fn is_running(&self) -> bool {
        self.own.load(Ordering::Relaxed) & RUNNING != 0
    }

    /// Whether it is queued, or a letter on its way that will queue it; for people who look.
    pub fn is_queued(&self) -> bool {
        self.own.load(Ordering::Relaxed) & QUEUED != 0
            || self.remote.load(Ordering::Relaxed) & REMOTE_WAKE != 0
    }

    /// Wakes it.
    #[inline]
    pub fn wake(&self, access: Access) -> Wake {
        self.wake_with(access, 0, 0)
    }

    /// Asks it to stop, and wakes it.
    pub fn ask_stop(&self, access: Access) -> Wake {
        self.wake_with(access, STOP, STOP_REMOTE)
    }

    /// Its runnable is dropped by somebody who is remote. It has to be sent home.
    pub fn refuse_away(&self) -> Wake {
        self.leave_word(REFUSED)
    }

    #[inline]
    fn wake_with(&self, access: Access, own: u32, remote: u32) -> Wake {
        match access {
            Access::Remote => self.leave_word(remote),
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

    fn leave_word(&self, word: u32) -> Wake {
        let before = self.remote.fetch_or(REMOTE_WAKE | word, Ordering::AcqRel);
        if before & (REMOTE_WAKE | LEFT) == 0 { Wake::Send } else { Wake::Nothing }
    }

    /// The letter is opened, at home or where the task went since.
    pub fn open(&self) -> Opened {
        let before = self.remote.fetch_and(!(REMOTE_WAKE | REFUSED | LEAVING), Ordering::AcqRel);
        Opened { refused: before & REFUSED != 0, leaving: before & LEAVING != 0 }
    }

    /// The holder of the runnable goes in. `access` is not `Remote`. Says whether it was asked to stop by then.
    #[inline]
    pub fn begin(&self, access: Access) -> bool {
        // Acquire: whoever was inside before us released it in `pause`.
        let before = self.change_own(access, |word| word & !QUEUED | RUNNING);
        before & STOP != 0 || self.remote.load(Ordering::Acquire) & STOP_REMOTE != 0
    }

    /// Whoever is inside has polled, and it waits.
    #[inline]
    pub fn pause(&self, access: Access) -> Pause {
        let before = self.change_own(access, |word| {
            let queued = if word & WOKEN != 0 { QUEUED } else { 0 };
            word & !(RUNNING | WOKEN) | queued
        });
        if before & WOKEN != 0 { Pause::Post } else { Pause::Idle }
    }

    /// Whether the body is gone.
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

    /// Adds a reference for a waker. False if there are too many already: then the caller, who has one, counts it elsewhere.
    #[inline]
    #[must_use]
    pub fn try_add_waker(&self, access: Access) -> bool {
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

    /// At home: brings the two counts together. A waker that is made here and used elsewhere counts up here and down there;
    /// in a task that lives for long each of the two would run over, though their sum is small.
    #[cold]
    fn settle(&self) {
        let own = self.own.load(Ordering::Relaxed);
        let others = count(own) - 1;
        self.own.store(own % REFERENCE + REFERENCE, Ordering::Relaxed);
        let change = others.cast_unsigned().wrapping_mul(REMOTE_REFERENCE);
        self.remote.fetch_add(change, Ordering::AcqRel);
    }

    /// One reference less. True: free it.
    #[inline]
    #[must_use]
    pub fn drop_reference(&self, access: Access) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        if access == Access::Remote || own & MERGED != 0 {
            let remote = self.remote.load(Ordering::Acquire);
            if remote & LEFT != 0 && remote / REMOTE_REFERENCE == 1 {
                // Ours is the only one: nobody else can be about to change it.
                return true;
            }
            let before = self.remote.fetch_sub(REMOTE_REFERENCE, Ordering::AcqRel);
            before & LEFT != 0 && before < 2 * REMOTE_REFERENCE
        } else if access == Access::Local {
            // The task has not left, or it would be merged; so its own reference is still there.
            self.own.store(own.wrapping_sub(REFERENCE), Ordering::Relaxed);
            if count(own) < -MOST_UNSETTLED {
                self.settle();
            }
            false
        } else {
            self.own.fetch_sub(REFERENCE, Ordering::AcqRel) < 2 * REFERENCE
        }
    }

    /// At home: wakes it and gives up a reference, at once. None, and nothing is done, if references are merged or have to be settled.
    #[inline]
    #[must_use]
    pub fn wake_and_drop_at_home(&self) -> Option<Wake> {
        let own = self.own.load(Ordering::Relaxed);
        if own & MERGED != 0 || count(own) < -MOST_UNSETTLED {
            return None;
        }
        let (next, wake) = woken(own);
        self.own.store(next.wrapping_sub(REFERENCE), Ordering::Relaxed);
        Some(wake)
    }

    /// The task, which has ended, leaves after all: a letter has kept it. `access` is not `Remote`. Its own reference is still there
    /// afterwards.
    #[inline]
    pub fn leave(&self, access: Access) -> Leave {
        self.leave_at(access, self.own.load(Ordering::Acquire))
    }

    /// Whoever is inside has destroyed the body: nobody goes in again, and the task leaves. As [`leave`](State::leave) otherwise.
    #[inline]
    pub fn finish_and_leave(&self, access: Access) -> Leave {
        let done = |word| word & !(RUNNING | WOKEN) | DONE;
        // As it was then. References that went since were counted then, and to leave as one that is counted is always right.
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
            // Nobody else knows it: then nobody else can be about to.
            if only_own && self.remote.load(Ordering::Acquire) == 0 {
                return if own & HANDLE != 0 { Leave::Here } else { Leave::Alone };
            }
        }
        self.leave_with_letters(own)
    }

    /// The task has told its parent and gives up its own reference, after [`Leave::Here`]. True: free it, for the handle went
    /// meanwhile.
    #[inline]
    #[must_use]
    pub fn left_to_handle(&self) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        self.own.store(own | LEFT_HERE, Ordering::Relaxed);
        own & HANDLE == 0
    }

    /// The handle at home goes. True: free the task.
    #[inline]
    #[must_use]
    pub fn drop_handle(&self) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        if own & HANDLE == 0 {
            return self.drop_reference(Access::Local);
        }
        self.own.store(own & !HANDLE, Ordering::Relaxed);
        own & LEFT_HERE != 0
    }

    /// The task was told to leave alone, and the parent, before it heard of that, has let somebody else refer to it. Never
    /// `Alone`. `access` is not `Remote`.
    #[cold]
    pub fn leave_after_all(&self, access: Access) -> Leave {
        let own = self.own.load(Ordering::Acquire);
        if own & MERGED == 0 && access == Access::Shared {
            return Leave::Counted;
        }
        self.leave_with_letters(own)
    }

    #[cold]
    fn leave_with_letters(&self, own: u32) -> Leave {
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
            // At home: nobody else writes it.
            self.own.store((own % REFERENCE) & !HANDLE | MERGED, Ordering::Relaxed);
        }
        Leave::Counted
    }

    /// A task at home, which runs, is about to move remote and be shared from now on. Its references are counted in `remote`
    /// from here on, where they can be changed by everybody.
    pub fn move_out(&self) {
        let own = self.own.load(Ordering::Relaxed);
        if own & MERGED == 0 {
            self.remote.fetch_add((own / REFERENCE).wrapping_mul(REMOTE_REFERENCE), Ordering::AcqRel);
            self.own.store((own % REFERENCE) | MERGED, Ordering::Release);
        }
    }

    /// Changes `own`, as it is done from there; says what it was.
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

/// How many references are counted in a word. Fewer than none, if more were dropped there than made.
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

/// The word of a task that is woken, and what to do.
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

/// As with `Arc`: a program that leaks references until the count overflows cannot go on. Wakers do not come here.
#[cold]
fn too_many() -> ! {
    eprintln!(
        "convoke: more references to one task than can be counted; handles are being leaked. Aborting."
    );
    std::process::abort()
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
