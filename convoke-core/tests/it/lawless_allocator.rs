//! Frame allocators that do everything the contract of `Allocator` permits: they panic, run out of memory now
//! and then, and run tasks themselves while they are called. All work ends, with some outcome, and all memory
//! comes back.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use convoke::env::current;
use convoke::sender::prelude::*;
use convoke::sender::sync_wait;
use convoke::task::task;
use convoke::{checkpoint, scope};
use convoke_core::env::Changes;
use convoke_core::frames::{AllocError, Allocator, Counting, FrameAllocator};
use convoke_core::raw::Frame;

/// Misbehaviour of an allocator at one call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Law {
    NoMemoryAt(usize),
    PanicAtAllocate(usize),
    PanicAtDeallocate(usize),
    PanicAtEveryDeallocate,
    RunsTasksItself,
    /// Starts an operation in the task that needs memory, and asks that task for its environment.
    UsesTheTask,
}

/// An allocator that misbehaves by one law. Its memory is the system's.
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

/// Runs a task from inside of an allocator. The allocations of that task do not do so again.
fn run_a_task() {
    if !INSIDE.replace(true) {
        assert_eq!(sync_wait(task(async { checkpoint().await })), Outcome::Value(()));
        INSIDE.set(false);
    }
}

/// Begins to await a sender in the task that needs memory, and drops the future: the operation is in flight when the task
/// gets its memory. The allocations of the operation do not do so again.
fn use_the_task() {
    if INSIDE.replace(true) {
        return;
    }
    // Outside a task there is none to use.
    if Frame::current(|frame| frame.is_some()) {
        let executor = current::executor();
        let mut started = Box::pin(schedule(&executor).into_future());
        let polled = started.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "the executor runs it later");
        drop((current::stop_token(), started));
    }
    INSIDE.set(false);
}

// SAFETY: all memory is the system's, and is given back to it before anything else happens.
unsafe impl Allocator for Lawless {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let call = self.allocated.fetch_add(1, Ordering::Relaxed);
        match self.law {
            Law::NoMemoryAt(at) if call == at => return Err(AllocError),
            Law::PanicAtAllocate(at) if call == at => panic!("an allocator that panics"),
            Law::RunsTasksItself => run_a_task(),
            Law::UsesTheTask => use_the_task(),
            _ => {}
        }
        Allocator::allocate(&self.memory, layout)
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the contract of this function is that of `Allocator::deallocate`, and the memory came from
        // `self.memory`.
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

/// A program with a child, in which both tasks await operations.
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

/// Runs the program with an allocator of this kind. Returns the outcome and the number of frames.
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
    // A scope or a launch that finds no memory panics here.
    let outcome = Panic::catch(|| sync_wait(task(program()).write_env(changes)));
    assert_eq!((memory.live(), memory.live_bytes()), (0, 0), "{law:?}");
    assert_eq!(dropped.load(Ordering::Relaxed), 1, "{law:?}");
    (outcome.unwrap_or_else(Outcome::Panicked), memory.total())
}

#[test]
fn work_that_gets_no_memory_ends_and_nothing_is_lost() {
    let (outcome, frames) = run(Law::NoMemoryAt(usize::MAX));
    assert_eq!(outcome, Outcome::Value(15));
    // Stop tokens and the like fall back on the global allocator. Frames of tasks, scopes and operations do not.
    let needed = (0..frames).filter(|at| run(Law::NoMemoryAt(*at)).0 != Outcome::Value(15)).count();
    assert!(
        (3..frames).contains(&needed),
        "{needed} of {frames} frames were needed: too few to be a test, or all"
    );
}

#[test]
fn an_allocator_that_panics_counts_as_one_without_memory() {
    let frames = run(Law::NoMemoryAt(usize::MAX)).1;
    for at in 0..frames {
        let none = run(Law::NoMemoryAt(at)).0;
        assert_eq!(run(Law::PanicAtAllocate(at)).0, none, "frame {at}");
    }
}

/// Regression: the panic unwound out of the code that freed memory. A scope then waited for ever, or the
/// process aborted.
#[test]
fn an_allocator_that_panics_at_deallocate_blocks_nothing() {
    let frames = run(Law::NoMemoryAt(usize::MAX)).1;
    for at in 0..frames {
        assert_eq!(run(Law::PanicAtDeallocate(at)).0, Outcome::Value(15), "frame {at}");
    }
    assert_eq!(run(Law::PanicAtEveryDeallocate).0, Outcome::Value(15));
}

#[test]
fn an_allocator_may_run_tasks_while_it_is_called() {
    assert_eq!(run(Law::RunsTasksItself).0, Outcome::Value(15));
}

/// Regression: a task that was used while it got its cold state had two, and did not wait for the operations that the first
/// one counted.
#[test]
fn an_allocator_may_use_the_task_that_it_is_called_for() {
    assert_eq!(run(Law::UsesTheTask).0, Outcome::Value(15));
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
