//! Which task each thread polls: one word for each thread, written when a poll begins, and read by those who watch.
//!
//! 1. A slot is written by its thread, and marked by watchers, each of whom has one of the low bits. What the thread writes
//!    has no marks: a mark that is still there says that the thread has begun no poll since.
//! 2. A slot is in the list from the first poll of its thread until the thread ends. Others look at it under the lock of the
//!    list alone.
//! 3. What is in it is compared, and never followed. It is not cleared when a poll ends, which would cost each poll as much
//!    again: whether that task still runs is for the tree to say.
//! 4. A task that runs a loop inside its poll is *around* what that polls, and stands in a word of its own meanwhile.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use super::is_on;
use crate::frame::Frame;
use crate::this_thread::Polling;

thread_local! {
    /// Takes the slot out of the list when the thread ends.
    static STAY: Stay = const { Stay };
}

struct Stay;

impl Drop for Stay {
    fn drop(&mut self) {
        Polling::here(|slot| list().retain(|listed| listed.slot != NonNull::from(slot)));
    }
}

struct Listed {
    slot: NonNull<Polling>,
    serial: u64,
    thread: Thread,
}

// SAFETY: rule 2: what it leads to is there as long as it is in the list, and is made of atomics.
unsafe impl Send for Listed {}

static LIST: Mutex<Vec<Listed>> = Mutex::new(Vec::new());

fn list() -> MutexGuard<'static, Vec<Listed>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This thread begins to poll the task. False if there is something to look at: a home that is closed, and [`watch`].
#[inline]
pub fn polls(task: NonNull<()>) -> bool {
    Polling::here(|slot| slot.begin(task.addr().get()))
}

/// If tasks are watched, the number of the watch. From here on the thread is in the list.
#[cold]
pub fn watch() -> Option<usize> {
    Polling::here(|slot| {
        // A thread that is about to end has no time to stall in.
        if slot.enlist() && STAY.try_with(|_| ()).is_ok() {
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
    // Under the lock: whoever begins to watch from now on sees it there.
    slot.set_watched(is_on());
}

/// Counts how often the last one who watched has ended. In between nothing was missed.
static WATCH: AtomicUsize = AtomicUsize::new(0);

/// Tells the threads that a diagnosis has begun or ended.
pub(super) fn watch_changed() {
    let list = list();
    let watched = is_on();
    for listed in &*list {
        // SAFETY: rule 2: we hold the lock.
        unsafe { listed.slot.as_ref() }.set_watched(watched);
    }
    if !watched {
        WATCH.fetch_add(1, Ordering::Relaxed);
    }
}

/// What was in the two words before the thread began to run a loop inside a poll, to be put back: rule 4.
#[derive(Debug)]
pub struct SetAside(Option<(usize, usize)>);

/// This thread begins to run a loop.
pub fn set_aside() -> SetAside {
    SetAside(Frame::current(|frame| {
        frame.map(|_| {
            Polling::here(|slot| {
                let task = slot.task.load(Ordering::Relaxed);
                let around = slot.around.load(Ordering::Relaxed);
                // Without marks: nobody has seen it there.
                slot.around.store(task & !usize::from(MARKS), Ordering::Relaxed);
                (task, around)
            })
        })
    }))
}

impl Drop for SetAside {
    fn drop(&mut self) {
        if let Some((task, around)) = self.0 {
            Polling::here(|slot| {
                slot.task.store(task, Ordering::Relaxed);
                slot.around.store(around, Ordering::Relaxed);
            });
        }
    }
}

/// The bits that are free in the address of a task, which is aligned to eight bytes.
pub const MARKS: u8 = 7;

static TAKEN: AtomicU8 = AtomicU8::new(0);

/// One of the low bits: rule 1. There are only a few, and so only so many can watch at a time.
#[derive(Debug)]
pub struct Mark(u8);

/// What is in a slot.
#[derive(Debug)]
pub struct Polled<'a> {
    /// The thread, by a number that no other has, and whether this is the word of the task around a loop.
    pub place: (u64, bool),
    /// The thread itself.
    pub thread: &'a Thread,
    /// The address of the task that it polled last.
    pub task: usize,
    /// Whether the mark was still there: it has begun no poll since the last look.
    pub same: bool,
}

impl Mark {
    /// A bit that nobody has, if there is one.
    pub fn take() -> Option<Self> {
        let free = |taken: u8| {
            let free = MARKS & !taken;
            (free != 0).then(|| taken | 1 << free.trailing_zeros())
        };
        let before = TAKEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).ok()?;
        let mark = 1 << (MARKS & !before).trailing_zeros();
        // Whoever had it before may have left it in slots.
        for listed in &*list() {
            for word in listed.words() {
                word.fetch_and(!usize::from(mark), Ordering::Relaxed);
            }
        }
        Some(Self(mark))
    }

    /// Looks at all slots, and marks them.
    pub fn look(&self, mut seen: impl FnMut(Polled<'_>)) {
        for listed in &*list() {
            for (word, around) in listed.words().into_iter().zip([false, true]) {
                let before = word.fetch_or(usize::from(self.0), Ordering::AcqRel);
                let (task, same) = (before & !usize::from(MARKS), before & usize::from(self.0) != 0);
                seen(Polled { place: (listed.serial, around), thread: &listed.thread, task, same });
            }
        }
    }
}

impl Listed {
    fn words(&self) -> [&AtomicUsize; 2] {
        // SAFETY: rule 2: who has a reference to what is in the list holds its lock.
        let slot = unsafe { self.slot.as_ref() };
        [&slot.task, &slot.around]
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        TAKEN.fetch_and(!self.0, Ordering::AcqRel);
    }
}
