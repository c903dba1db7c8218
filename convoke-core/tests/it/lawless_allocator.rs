//! Frame allocators that do whatever the contract of `Allocator` leaves to them: they panic, have no memory now and then,
//! and run tasks themselves while they are asked. All work ends, by whichever door, and all memory comes back.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::sender::prelude::*;
use convoke::sender::sync_wait;
use convoke::task::task;
use convoke::{checkpoint, scope};
use convoke_core::env::Changes;
use convoke_core::frames::{AllocError, Allocator, Counting, FrameAllocator};

/// What an allocator does at one call of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Law {
    NoMemoryAt(usize),
    PanicAtAllocate(usize),
    PanicAtDeallocate(usize),
    PanicAtEveryDeallocate,
    RunsTasksItself,
}

/// Breaks one law; its memory is the system's.
struct Lawless {
    law: Law,
    memory: Counting<FrameAllocator>,
    allocated: AtomicUsize,
    freed: AtomicUsize,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Lawless {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        if self.law == Law::PanicAtEveryDeallocate {
            panic!("an allocator that panics when it is dropped");
        }
    }
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a task with an allocator that is in the middle of something. The inner one does not do so again.
fn run_a_task() {
    if !INSIDE.replace(true) {
        assert_eq!(sync_wait(task(async { checkpoint().await })), Outcome::Value(()));
        INSIDE.set(false);
    }
}

// SAFETY: all memory is the system's, whole and fresh, and is given back to it before anything else happens.
unsafe impl Allocator for Lawless {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let call = self.allocated.fetch_add(1, Ordering::Relaxed);
        match self.law {
            Law::NoMemoryAt(at) if call == at => return Err(AllocError),
            Law::PanicAtAllocate(at) if call == at => panic!("an allocator that panics"),
            Law::RunsTasksItself => run_a_task(),
            _ => {}
        }
        Allocator::allocate(&self.memory, layout)
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the contract of this function is that of the other.
        unsafe { Allocator::deallocate(&self.memory, memory, layout) };
        let call = self.freed.fetch_add(1, Ordering::Relaxed);
        match self.law {
            Law::PanicAtDeallocate(at) if call == at => panic!("an allocator that panics"),
            Law::PanicAtEveryDeallocate => panic!("an allocator that panics"),
            Law::RunsTasksItself => run_a_task(),
            _ => {}
        }
    }
}

/// A program with a child, and operations that are guests of both tasks.
async fn program() -> u32 {
    let sum = scope(async |s| {
        let child = s.spawn_future(async { just(1).boxed().await + checkpoint_and(2).await });
        let own = just(4).boxed().await;
        own + child.await
    });
    sum.await + checkpoint_and(8).await
}

async fn checkpoint_and(number: u32) -> u32 {
    checkpoint().await;
    number
}

/// Runs the program with an allocator of this kind, and says how it ended and how many frames were asked for.
fn run(law: Law) -> (Outcome<u32>, usize) {
    let (memory, dropped) = (Counting::new(FrameAllocator::system()), Arc::new(AtomicUsize::new(0)));
    let lawless = Lawless {
        law,
        memory: memory.clone(),
        allocated: AtomicUsize::new(0),
        freed: AtomicUsize::new(0),
        dropped: dropped.clone(),
    };
    let changes = Changes::new().allocator(FrameAllocator::new(lawless));
    // What a scope or a launch throws where there is no memory goes on here.
    let outcome = Panic::catch(|| sync_wait(task(program()).write_env(changes)));
    assert_eq!((memory.live(), memory.live_bytes()), (0, 0), "{law:?}");
    assert_eq!(dropped.load(Ordering::Relaxed), 1, "{law:?}");
    (outcome.unwrap_or_else(Outcome::Panicked), memory.total())
}

#[test]
fn memory_that_is_not_there_ends_the_work_that_needs_it_and_nothing_is_lost() {
    let (outcome, frames) = run(Law::NoMemoryAt(usize::MAX));
    assert_eq!(outcome, Outcome::Value(15));
    assert!(frames >= 3, "{frames} frames: otherwise there is nothing to try");
    for at in 0..frames {
        assert_ne!(run(Law::NoMemoryAt(at)).0, Outcome::Value(15), "frame {at} was needed");
    }
}

#[test]
fn an_allocator_that_panics_counts_as_one_without_memory() {
    let frames = run(Law::NoMemoryAt(usize::MAX)).1;
    for at in 0..frames {
        let none = run(Law::NoMemoryAt(at)).0;
        assert_eq!(run(Law::PanicAtAllocate(at)).0, none, "frame {at}");
    }
}

/// Before, the panic unwound out of whatever was being freed: a scope then waited for ever, or the process ended.
#[test]
fn an_allocator_that_panics_when_memory_comes_back_keeps_nobody_waiting() {
    let frames = run(Law::NoMemoryAt(usize::MAX)).1;
    for at in 0..frames {
        assert_eq!(run(Law::PanicAtDeallocate(at)).0, Outcome::Value(15), "frame {at}");
    }
    assert_eq!(run(Law::PanicAtEveryDeallocate).0, Outcome::Value(15));
}

#[test]
fn an_allocator_may_run_tasks_itself_while_it_is_asked() {
    assert_eq!(run(Law::RunsTasksItself).0, Outcome::Value(15));
}

#[test]
fn a_handle_to_an_allocator_that_panics_does_not() {
    let law = |law| {
        let memory = Counting::new(FrameAllocator::system());
        let dropped = Arc::default();
        FrameAllocator::new(Lawless {
            law,
            memory,
            allocated: AtomicUsize::new(0),
            freed: AtomicUsize::new(0),
            dropped,
        })
    };
    let layout = Layout::new::<[u64; 4]>();
    assert_eq!(law(Law::PanicAtAllocate(0)).allocate(layout), None);
    let frames = law(Law::PanicAtEveryDeallocate);
    let frame = frames.allocate(layout).unwrap();
    // SAFETY: it came from there with this layout.
    unsafe { frames.deallocate(frame, layout) };
    drop(frames);
}
