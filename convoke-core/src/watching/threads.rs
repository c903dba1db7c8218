//! The task that each thread polls: one word for each thread, written when a poll begins, and read by
//! watchers.
//!
//! 1. A slot is written by its thread and marked by watchers, each of which has one of the low bits. The
//!    thread writes words without marks: a mark that is still there means that the thread has begun no poll
//!    since.
//! 2. A slot is in the list from the first poll of its thread until the thread ends. Other threads access it
//!    only with the lock of the list held.
//! 3. The address in it is compared, and never dereferenced. It is not cleared when a poll ends, which would
//!    double the cost: the task tree knows whether that task still runs.
//! 4. A task that runs a loop inside its poll is the *outer task* of the tasks that the loop polls. It is in
//!    a word of its own meanwhile.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use super::{is_hooked, is_on};
use crate::frame::Frame;
use crate::this_thread::Polling;

thread_local! {
    /// Removes the slot from the list when the thread ends.
    static LISTED: Unlist = const { Unlist };
}

struct Unlist;

impl Drop for Unlist {
    fn drop(&mut self) {
        Polling::here(|slot| list().retain(|listed| listed.slot != NonNull::from(slot)));
    }
}

struct Listed {
    slot: NonNull<Polling>,
    serial: u64,
    thread: Thread,
}

// SAFETY: rule 2: the slot exists as long as it is in the list, and consists of atomics.
unsafe impl Send for Listed {}

static LIST: Mutex<Vec<Listed>> = Mutex::new(Vec::new());

fn list() -> MutexGuard<'static, Vec<Listed>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that this thread begins to poll the task. Returns false if there is more to do: the thread acts
/// for an owner that is closed, or it should call [`watch`].
#[inline]
pub fn polls(task: NonNull<()>) -> bool {
    Polling::here(|slot| slot.begin(task.addr().get()))
}

/// Adds this thread to the list, if it is not in it. Returns the number of the watch if a diagnosis is under
/// way.
#[cold]
pub fn watch() -> Option<usize> {
    Polling::here(|slot| {
        // A thread whose thread-locals are being destroyed is not listed: it cannot be unlisted any more.
        if slot.enlist() && LISTED.try_with(|_| ()).is_ok() {
            add(slot);
        }
    });
    is_on().then(|| WATCH.load(Ordering::Relaxed))
}

fn add(slot: &Polling) {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let mut list = list();
    list.push(Listed { slot: NonNull::from(slot), serial, thread: thread::current() });
    // With the lock held: a diagnosis that begins later sees the slot in the list.
    slot.set_watched(is_on() || is_hooked());
}

/// The number of times that the last diagnosis has ended. Within one number no poll was missed.
static WATCH: AtomicUsize = AtomicUsize::new(0);

/// Tells the threads that a diagnosis has begun or ended.
pub(super) fn watch_changed() {
    let list = list();
    let watched = is_on() || is_hooked();
    for listed in &*list {
        // SAFETY: rule 2: `list` holds the lock.
        unsafe { listed.slot.as_ref() }.set_watched(watched);
    }
    if !is_on() {
        WATCH.fetch_add(1, Ordering::Relaxed);
    }
}

/// The two words of a slot from before the thread began to run a loop inside a poll: rule 4. Dropping it
/// restores them.
#[derive(Debug)]
pub struct SetAside(Option<(usize, usize)>);

/// Records that this thread begins to run a loop inside a poll.
pub fn set_aside() -> SetAside {
    SetAside(Frame::current(|frame| {
        frame.map(|_| {
            Polling::here(|slot| {
                let task = slot.task.load(Ordering::Relaxed);
                let outer_task = slot.outer_task.load(Ordering::Relaxed);
                // Without marks: no watcher has seen the task in this word.
                slot.outer_task.store(task & !usize::from(MARKS), Ordering::Relaxed);
                (task, outer_task)
            })
        })
    }))
}

impl Drop for SetAside {
    fn drop(&mut self) {
        if let Some((task, outer_task)) = self.0 {
            Polling::here(|slot| {
                slot.task.store(task, Ordering::Relaxed);
                slot.outer_task.store(outer_task, Ordering::Relaxed);
            });
        }
    }
}

/// The free bits in the address of a task, which is aligned to eight bytes.
pub const MARKS: u8 = 7;

static TAKEN: AtomicU8 = AtomicU8::new(0);

/// One of the low bits: rule 1. There are three, so that at most three diagnoses can watch at a time.
#[derive(Debug)]
pub struct PolledMark(u8);

/// The contents of a slot.
#[derive(Debug)]
pub struct PolledTask<'a> {
    /// The serial number of the thread, and whether this is the word of an outer task.
    pub place: (u64, bool),
    /// The thread itself.
    pub thread: &'a Thread,
    /// The address of the task that it polled last.
    pub task: usize,
    /// True if the mark was still there: the thread has begun no poll since the last visit.
    pub same: bool,
}

impl PolledMark {
    /// Takes a free bit, or returns `None` if all are taken.
    pub fn take() -> Option<Self> {
        let free = |taken: u8| {
            let free = MARKS & !taken;
            (free != 0).then(|| taken | 1 << free.trailing_zeros())
        };
        let before = TAKEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).ok()?;
        let mark = 1 << (MARKS & !before).trailing_zeros();
        // The holder before may have left it in slots.
        for listed in &*list() {
            for word in listed.words() {
                word.fetch_and(!usize::from(mark), Ordering::Relaxed);
            }
        }
        Some(Self(mark))
    }

    /// Visits all slots, and marks them.
    pub fn read(&self, mut seen: impl FnMut(PolledTask<'_>)) {
        for listed in &*list() {
            for (word, is_outer) in listed.words().into_iter().zip([false, true]) {
                let before = word.fetch_or(usize::from(self.0), Ordering::AcqRel);
                let (task, same) = (before & !usize::from(MARKS), before & usize::from(self.0) != 0);
                seen(PolledTask { place: (listed.serial, is_outer), thread: &listed.thread, task, same });
            }
        }
    }
}

impl Listed {
    fn words(&self) -> [&AtomicUsize; 2] {
        // SAFETY: rule 2: `&self` is a reference into the list, which only a holder of its lock has.
        let slot = unsafe { self.slot.as_ref() };
        [&slot.task, &slot.outer_task]
    }
}

impl Drop for PolledMark {
    fn drop(&mut self) {
        TAKEN.fetch_and(!self.0, Ordering::AcqRel);
    }
}
