//! Frame allocators that do everything the contract of `Allocator` permits: they panic, run out of memory now
//! and then, and run tasks themselves while they are called. All work ends, with some outcome, and all memory
//! comes back.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use convoke::alloc::frame;
use convoke::env::{Local, current, with_local};
use convoke::executor::block_on_with;
use convoke::prelude::{AsyncClose, Exit, timeout, using};
use convoke::scope::local_scope_not_send;
use convoke::sender::prelude::*;
use convoke::sender::sync_wait;
use convoke::task::{forever, task};
use convoke::{checkpoint, join, scope};
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

/// A program in which the task needs memory for many other things than children: the branches of `join` and `select!`, a
/// framed future, locals, a stop token and what hears of it, the results of a scope, children that are not `Send`, clean-up.
async fn other_program() -> u32 {
    static KEY: Local<u32> = Local::inherited("key");
    let framed = with_local(&KEY, 1, async {
        frame(checkpoint_and(1)).await + current::local(&KEY).unwrap_or_default()
    });
    let branches: u32 = join(vec![checkpoint_and(1), checkpoint_and(1)]).await.into_iter().sum();
    let raced = convoke::select! {
        number = checkpoint_and(1) => number,
        () = async {
            drop(current::stop_token());
            forever().await
        } => 100,
    };
    let results = scope(async |s| {
        let mut results = s.results();
        results.spawn(checkpoint_and(2));
        results.next().await.unwrap_or_default()
    });
    let local = local_scope_not_send(async |s| s.spawn_future(checkpoint_and(4)).await);
    let closed = using(Closes, async |_| checkpoint_and(1).await);
    framed.await + branches + raced + results.await + local.await + closed.await
}

struct Closes;

impl AsyncClose for Closes {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        checkpoint().await;
        Ok(())
    }
}

async fn checkpoint_and(number: u32) -> u32 {
    checkpoint().await;
    number
}

/// Runs the program with an allocator of this kind. Returns the outcome and the number of frames.
fn run(law: Law) -> (Outcome<u32>, usize) {
    run_program(law, |changes| sync_wait(task(program()).write_env(changes)))
}

/// As `run`, with the other program.
fn run_other(law: Law) -> (Outcome<u32>, usize) {
    run_program(law, |changes| block_on_with(changes, other_program()))
}

fn run_program(law: Law, program: impl FnOnce(Changes) -> Outcome<u32>) -> (Outcome<u32>, usize) {
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
    let outcome = Panic::catch(|| program(changes));
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

#[test]
fn every_part_of_a_task_may_get_its_memory_late_or_not_at_all() {
    let (outcome, frames) = run_other(Law::NoMemoryAt(usize::MAX));
    assert_eq!(outcome, Outcome::Value(12));
    let mut ended = 0;
    for at in 0..frames {
        let none = run_other(Law::NoMemoryAt(at)).0;
        assert_eq!(run_other(Law::PanicAtAllocate(at)).0, none, "frame {at}");
        assert_eq!(run_other(Law::PanicAtDeallocate(at)).0, Outcome::Value(12), "frame {at}");
        ended += usize::from(none == Outcome::Value(12));
    }
    assert!(ended > 5 && ended < frames, "of {frames} frames {ended} were replaced by others");
    for law in [Law::PanicAtEveryDeallocate, Law::RunsTasksItself, Law::UsesTheTask] {
        assert_eq!(run_other(law).0, Outcome::Value(12), "{law:?}");
    }
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

thread_local! {
    static CALLED: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
}

/// An allocator that calls code of the program before it allocates, though not from inside of that code.
struct Calls;

// SAFETY: all memory is the system's.
unsafe impl Allocator for Calls {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if !INSIDE.replace(true) {
            let called = CALLED.with_borrow_mut(Option::take);
            if let Some(called) = called {
                called();
                CALLED.set(Some(called));
            }
            INSIDE.set(false);
        }
        Allocator::allocate(&FrameAllocator::system(), layout)
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the contract of this function, and the memory came from the system's allocator.
        unsafe { Allocator::deallocate(&FrameAllocator::system(), memory, layout) };
    }
}

/// Runs a task whose allocator is `Calls`.
fn run_with_calls<T: 'static>(body: impl Future<Output = T>) -> T {
    let outcome = block_on_with(Changes::new().allocator(FrameAllocator::new(Calls)), body);
    CALLED.set(None);
    outcome.unwrap()
}

/// Makes the allocator call this from now on.
fn from_now_on(called: impl Fn() + 'static) {
    CALLED.set(Some(Box::new(called)));
}

/// Regression: the token was made under the lock that guards it, and the second call waited for ever.
#[test]
fn an_allocator_may_ask_for_the_stop_token_that_it_is_called_for() {
    run_with_calls(async {
        let waits = from_callback(|completion: Completion<()>| {
            let completion = Rc::new(completion);
            let tokens = Rc::new(RefCell::new(Vec::new()));
            from_now_on({
                let (completion, tokens) = (completion.clone(), tokens.clone());
                move || tokens.borrow_mut().push(completion.stop_token())
            });
            let token = completion.stop_token();
            CALLED.set(None);
            assert!(!tokens.borrow().is_empty() && tokens.borrow().iter().all(|other| *other == token));
            Rc::into_inner(completion).unwrap().value(());
        });
        waits.await;
    });
}

/// Asks for the stop token of the running task, or of a part of it, while the allocator does so too.
fn asks_for_one_token() {
    let tokens = Rc::new(RefCell::new(Vec::new()));
    let others = tokens.clone();
    from_now_on(move || others.borrow_mut().push(current::stop_token()));
    let token = current::stop_token();
    CALLED.set(None);
    assert!(!tokens.borrow().is_empty() && tokens.borrow().iter().all(|other| *other == token));
}

/// Regression: a task had two tokens, of which one never heard of a stop, and a part of a task panicked.
#[test]
fn an_allocator_may_ask_a_task_and_its_parts_for_their_tokens() {
    run_with_calls(async {
        // From here on the task can store more than its future.
        from_callback(|completion: Completion<()>| completion.value(())).await;
        asks_for_one_token();
    });
    run_with_calls(async {
        timeout(Duration::from_secs(3600), async { asks_for_one_token() }).await.unwrap();
    });
}

/// Waits until it is woken, and leaves its waker in a list.
async fn leave_waker(wakers: Rc<RefCell<Vec<Waker>>>) {
    let mut is_woken = false;
    poll_fn(|cx| {
        if !core::mem::replace(&mut is_woken, true) {
            wakers.borrow_mut().push(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// Regression: the set of woken branches grew under its lock.
#[test]
fn an_allocator_may_wake_the_branches_of_the_task_that_it_is_called_for() {
    run_with_calls(async {
        let wakers = Rc::new(RefCell::new(Vec::new()));
        let branches: Vec<_> = (0..20).map(|_| leave_waker(wakers.clone())).collect();
        let wakes = async {
            checkpoint().await;
            let others = wakers.clone();
            from_now_on(move || others.borrow().iter().for_each(Waker::wake_by_ref));
            wakers.borrow()[0].wake_by_ref();
            checkpoint().await;
            CALLED.set(None);
            wakers.borrow().iter().for_each(Waker::wake_by_ref);
        };
        join((wakes, join(branches))).await;
    });
}

/// Regression: the children of a local scope were put into a list that grew under its lock.
#[test]
fn an_allocator_may_spawn_into_the_local_scope_that_it_is_called_for() {
    let ran = run_with_calls(async {
        let ran = Rc::new(Cell::new(0));
        let counted = ran.clone();
        local_scope_not_send(async |s| {
            // The list is full when the test adds a child, and has room when the allocator adds one.
            s.spawn(async {});
            let (scope, spawned) = (s.clone(), counted.clone());
            from_now_on(move || {
                let counted = spawned.clone();
                scope.spawn(async move { counted.set(counted.get() + 1) });
            });
            for _ in 0..3 {
                let counted = counted.clone();
                s.spawn(async move { counted.set(counted.get() + 1) });
            }
            CALLED.set(None);
        })
        .await;
        ran.get()
    });
    assert!(ran > 3, "{ran}");
}

/// Regression: results waited in a queue that grew under its lock.
#[test]
fn an_allocator_may_spawn_where_the_result_goes_that_it_is_called_for() {
    let sum = run_with_calls(async {
        scope(async |s| {
            let results = Arc::new(s.results());
            for n in 0..10 {
                results.spawn(async move { n });
            }
            let weak = Arc::downgrade(&results);
            let left = Cell::new(5);
            from_now_on(move || {
                if left.get() > 0
                    && let Some(results) = weak.upgrade()
                {
                    left.set(left.get() - 1);
                    results.spawn(async { 100 });
                }
            });
            checkpoint().await;
            CALLED.set(None);
            let mut results = Arc::into_inner(results).unwrap();
            let mut sum = 0;
            while let Some(n) = results.next().await {
                sum += n;
            }
            sum
        })
        .await
    });
    assert!(sum > 45 && sum % 100 == 45, "{sum}");
}
