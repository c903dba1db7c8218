//! Edge cases of tasks and scopes: late remote wakes, lack of memory, loops that end first, millions of references.
//! Each of these is a regression test.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};

use convoke::alloc::{AllocError, Allocator};
use convoke::env::{Changes, FrameAllocator};
use convoke::executor::{RunLoop, reschedule};
use convoke::prelude::*;
use convoke::raw::task_state::{Access, State};
use convoke::sender::prelude::*;

/// Wakes the task from another thread, and waits for that thread.
fn wake_remotely(waker: &Waker) {
    let waker = waker.clone();
    std::thread::spawn(move || waker.wake()).join().unwrap();
}

#[test]
fn a_task_that_ends_with_a_remote_wake_in_flight_delivers_once() {
    let outcome = sync_wait(task(poll_fn(|cx| {
        wake_remotely(cx.waker());
        Poll::Ready(String::from("once"))
    })));
    assert_eq!(outcome, Outcome::Value("once".to_owned()));
}

#[test]
fn a_child_that_ends_with_a_remote_wake_in_flight_ends_once() {
    let outcome = sync_wait(task(async {
        scope(async |s| {
            for _ in 0..3 {
                s.spawn(poll_fn(|cx| {
                    wake_remotely(cx.waker());
                    Poll::Ready(())
                }));
            }
            let handle = s.spawn_future(poll_fn(|cx| {
                wake_remotely(cx.waker());
                Poll::Ready(String::from("once"))
            }));
            handle.await
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value("once".to_owned()));
}

#[test]
fn any_number_of_wakers_may_be_made_on_one_thread_and_dropped_on_another() {
    const MANY: usize = if cfg!(miri) { 1_000 } else { 20_000_000 };
    let state = State::queued(0);
    for _ in 0..MANY {
        state.add_reference(Access::Local);
        assert!(!state.drop_reference(Access::Remote));
    }
    for _ in 0..MANY {
        state.add_reference(Access::Remote);
        assert!(!state.drop_reference(Access::Local));
    }
}

/// An allocator that has memory for `n` more allocations.
#[derive(Clone, Debug)]
struct RunsOut(Arc<AtomicUsize>);

impl Default for RunsOut {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(usize::MAX)))
    }
}

impl RunsOut {
    fn now(&self) {
        self.after(0);
    }

    fn after(&self, pieces: usize) {
        self.0.store(pieces, Ordering::Relaxed);
    }

    fn changes(&self) -> Changes {
        Changes::new().allocator(FrameAllocator::new(self.clone()))
    }
}

// SAFETY: every call is passed on to the system's allocator.
unsafe impl Allocator for RunsOut {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map_err(|_| AllocError)?;
        let memory = FrameAllocator::system().allocate(layout).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: `allocate` got it from the system's allocator.
        unsafe { FrameAllocator::system().deallocate(memory, layout) };
    }
}

/// Adds one when it is dropped.
struct Leaves(Arc<AtomicUsize>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls a future once, as a foreign `select!` does.
async fn poll_once(mut future: Pin<&mut impl Future>) {
    poll_fn(|cx| {
        let _ = future.as_mut().poll(cx);
        Poll::Ready(())
    })
    .await;
}

/// Returns a future that needs memory to be awaited.
fn scheduled(pool: &ThreadPool) -> impl Future<Output = ()> + Send + 'static {
    schedule(&pool.executor()).into_awaited()
}

#[test]
#[should_panic(expected = "left for an operation that a task awaits")]
fn a_task_without_memory_for_an_operation_panics_and_ends() {
    let (memory, pool) = (RunsOut::default(), ThreadPool::new(1).unwrap());
    let (runs_out, awaited) = (memory.clone(), scheduled(&pool));
    let work = task(async move {
        runs_out.now();
        awaited.await;
    });
    let _ = sync_wait_with(memory.changes(), work);
}

#[test]
#[should_panic(expected = "left for an operation that a task awaits")]
fn an_operation_that_got_no_memory_is_not_waited_for() {
    let (memory, pool) = (RunsOut::default(), ThreadPool::new(1).unwrap());
    let (runs_out, second) = (memory.clone(), scheduled(&pool));
    let work = task(async move {
        // In flight until it is dropped, so that its memory is not reused for the second.
        let mut first = Box::pin(never::<()>().into_awaited());
        poll_once(first.as_mut()).await;
        runs_out.now();
        second.await;
    });
    let _ = sync_wait_with(memory.changes(), work);
}

#[test]
fn a_scope_that_is_dropped_without_memory_keeps_what_its_children_need() {
    let memory = RunsOut::default();
    let runs_out = memory.clone();
    let ended = Arc::new(AtomicUsize::new(0));
    let pool = ThreadPool::new(2).unwrap();
    let (executor, count) = (pool.executor(), ended.clone());
    let work = task(async move {
        let mut opened = Box::pin(scope(async |s| {
            for _ in 0..10 {
                // Created here: a child that is stopped before it runs never starts its body.
                let leaves = Leaves(count.clone());
                s.child().on(&executor).spawn(async move {
                    let _leaves = leaves;
                    loop {
                        checkpoint().await;
                    }
                });
            }
            poll_fn(|_| Poll::<()>::Pending).await
        }));
        poll_once(opened.as_mut()).await;
        runs_out.now();
        let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || drop(opened)));
        assert!(dropped.is_ok(), "the scope is dropped, memory or not");
    });
    assert_eq!(sync_wait_with(memory.changes(), work), Outcome::Value(()));
    drop(pool);
    assert_eq!(ended.load(Ordering::Relaxed), 10);
}

#[test]
fn a_name_for_which_there_is_no_memory_is_left_out() {
    let memory = RunsOut::default();
    let ran = Arc::new(AtomicUsize::new(0));
    let (inside, count) = (memory.clone(), ran.clone());
    let outcome = sync_wait_with(
        memory.changes(),
        task(async move {
            scope(async |s| {
                inside.after(1);
                s.named("nameless").spawn(async move {
                    count.fetch_add(1, Ordering::Relaxed);
                });
            })
            .await;
        }),
    );
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[test]
fn a_remote_wake_that_a_loop_has_taken_when_it_ends_is_received_then() {
    let (to_main, woken) = mpsc::channel::<Waker>();
    let (executors, executor) = mpsc::channel();
    let (ended, end) = mpsc::channel::<()>();
    let looping = std::thread::spawn(move || {
        let run_loop = RunLoop::new();
        executors.send(run_loop.executor()).unwrap();
        // The task waits.
        while !run_loop.run_one() {
            std::thread::yield_now();
        }
        end.recv().unwrap();
        // Takes all that was posted, and runs the first; the remote wake is behind it.
        assert!(run_loop.run_one());
    });
    let executor = executor.recv().unwrap();
    let waits = {
        let executor = executor.clone();
        std::thread::spawn(move || {
            let work = task(poll_fn(move |cx| {
                to_main.send(cx.waker().clone()).unwrap();
                Poll::<()>::Pending
            }));
            sync_wait(work.starts_on(&executor))
        })
    };
    let waker = woken.recv().unwrap();
    let before_it = CountingScope::new();
    before_it.spawn(schedule(&executor), &Env::new()).unwrap();
    waker.wake();
    ended.send(()).unwrap();
    looping.join().unwrap();
    assert_eq!(waits.join().unwrap(), Outcome::Stopped);
    let _ = sync_wait(before_it.join());
}

#[test]
fn a_task_that_has_moved_is_woken_by_a_remote_wake_to_its_old_thread() {
    let pool = ThreadPool::new(2).unwrap();
    for _ in 0..if cfg!(miri) { 5 } else { 500 } {
        let executor = pool.executor();
        let outcome = sync_wait(task(async move {
            let mut threads = Vec::new();
            poll_fn(|cx| {
                for _ in 0..2 {
                    let waker = cx.waker().clone();
                    threads.push(std::thread::spawn(move || waker.wake()));
                }
                Poll::Ready(())
            })
            .await;
            reschedule(&executor).await.unwrap();
            threads
        }));
        for thread in outcome.unwrap() {
            thread.join().unwrap();
        }
    }
}

#[test]
fn children_that_end_while_they_are_asked_to_stop_end_once() {
    let pool = ThreadPool::new(2).unwrap();
    let stopping = ThreadPool::new(1).unwrap();
    for round in 0..if cfg!(miri) { 4 } else { 2_000_u32 } {
        let (executor, elsewhere) = (pool.executor(), stopping.executor());
        let on_owner = round % 2 == 0;
        let work = task(async move {
            let mut opened = Box::pin(scope(async |s| {
                for _ in 0..4 {
                    if on_owner {
                        s.spawn(checkpoint());
                    } else {
                        s.child().on(&executor).spawn(checkpoint());
                    }
                }
                never::<()>().await
            }));
            poll_once(opened.as_mut()).await;
            // The scope is dropped, and asks its children to stop, while they run on the thread that opened it.
            reschedule(&elsewhere).await.unwrap();
            drop(opened);
        });
        assert_eq!(sync_wait(work), Outcome::Value(()));
    }
}

/// Each line that spawns is a spawn site of the scope, and the third and later ones are allocated. Miri checks
/// that they are freed through a pointer with the right provenance.
#[test]
fn a_scope_with_five_spawn_sites_is_opened_twice() {
    for _ in 0..2 {
        let outcome = sync_wait(task(async {
            scope(async |s| {
                s.spawn(async {});
                s.spawn(async {});
                s.spawn(async {});
                s.spawn(async {});
                s.spawn(async {});
            })
            .await
        }));
        assert_eq!(outcome, Outcome::Value(()));
    }
}

/// More wakers than the state of a task can count.
const MANY_WAKERS: usize = (1 << 22) + (1 << 21);

/// Clones its waker that many times, has the last clone wake it from another thread, and drops all when it is
/// polled again.
async fn clone_many_wakers() -> usize {
    let mut wakers = Vec::new();
    poll_fn(|cx| {
        if !wakers.is_empty() {
            return Poll::Ready(());
        }
        wakers.extend((0..MANY_WAKERS).map(|_| cx.waker().clone()));
        let (last, another) = (wakers.pop().unwrap(), wakers.last().unwrap().clone());
        std::thread::spawn(move || {
            drop(another);
            last.wake();
        })
        .join()
        .unwrap();
        Poll::Pending
    })
    .await;
    wakers.len()
}

#[test]
#[cfg_attr(miri, ignore = "millions of wakers take hours")]
fn an_owned_task_may_have_millions_of_wakers() {
    assert_eq!(sync_wait(task(clone_many_wakers())), Outcome::Value(MANY_WAKERS - 1));
}

#[test]
#[cfg_attr(miri, ignore = "millions of wakers take hours")]
fn a_shared_task_may_have_millions_of_wakers() {
    let pool = ThreadPool::new(1).unwrap();
    let outcome = sync_wait(task(clone_many_wakers()).starts_on(&pool.executor()));
    assert_eq!(outcome, Outcome::Value(MANY_WAKERS - 1));
}

/// An executor that counts its handles.
struct Counted {
    inner: convoke::executor::ExecutorRef,
    handles: Arc<AtomicUsize>,
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.handles.fetch_add(1, Ordering::Relaxed);
        Self { inner: self.inner.clone(), handles: self.handles.clone() }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.handles.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Executor for Counted {
    fn post(&self, runnable: convoke::raw::Runnable) {
        self.inner.post(runnable);
    }
}

#[test]
fn a_task_drops_the_environments_of_executors_that_it_has_left() {
    let pools = [ThreadPool::new(1).unwrap(), ThreadPool::new(1).unwrap()];
    let handles = Arc::new(AtomicUsize::new(0));
    let most = sync_wait(task({
        let handles = handles.clone();
        let executors = pools.each_ref().map(|pool| pool.executor());
        async move {
            let mut most = 0;
            for executor in executors.iter().cycle().take(if cfg!(miri) { 10 } else { 100 }) {
                handles.fetch_add(1, Ordering::Relaxed);
                let to = Counted {
                    inner: convoke::executor::ExecutorRef::new(*executor),
                    handles: handles.clone(),
                };
                reschedule(&to).await.unwrap();
                drop(to);
                checkpoint().await;
                most = most.max(handles.load(Ordering::Relaxed));
            }
            most
        }
    }));
    // One for each of the last two environments, and those that a poll borrows.
    let most = most.unwrap();
    assert!(most <= 6, "there were {most} handles at a time");
    // The last post may still hold its own handle, on a thread that the task has left: wait for the threads.
    drop(pools);
    assert_eq!(handles.load(Ordering::Relaxed), 0);
}
