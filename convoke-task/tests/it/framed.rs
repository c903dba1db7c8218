//! Framed futures: memory of the task's frame allocator, for recursive functions and erased types.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::alloc::frame;
use convoke::alloc::{Bounded, Counting, FrameAllocator};
use convoke::alloc::{Framed, frame_dyn, frame_dyn_local, try_frame};
use convoke::env::Changes;
use convoke::prelude::*;
use convoke::sender::prelude::*;

async fn depth(n: u32) -> u32 {
    if n == 0 {
        return 0;
    }
    checkpoint().await;
    1 + frame(depth(n - 1)).await
}

async fn even(n: u32) -> bool {
    if n == 0 { true } else { frame(odd(n - 1)).await }
}

async fn odd(n: u32) -> bool {
    if n == 0 { false } else { frame(even(n - 1)).await }
}

#[expect(clippy::manual_async_fn, reason = "the declared bound `Send` breaks the cycle of its type")]
fn declared(n: u32) -> impl Future<Output = u32> + Send {
    async move { if n == 0 { 0 } else { 1 + frame_dyn(declared(n - 1)).await } }
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn an_async_fn_may_call_itself_and_stays_send() {
    let pool = ThreadPool::new(2).unwrap();
    const DEEP: u32 = if cfg!(miri) { 20 } else { 100 };
    let deep = is_send(depth(DEEP));
    assert_eq!(sync_wait(task(deep).starts_on(&pool.executor())), Outcome::Value(DEEP));
    assert_eq!(sync_wait(task(is_send(even(10)))), Outcome::Value(true));
    assert_eq!(sync_wait(task(is_send(declared(10)))), Outcome::Value(10));
}

#[test]
fn frames_are_allocated_and_freed_by_the_allocator_of_the_task() {
    let counting = Counting::new(FrameAllocator::system());
    let changes = Changes::new().allocator(FrameAllocator::new(counting.clone()));
    let watched = counting.clone();
    let outcome = sync_wait_with(
        changes,
        task(async move {
            let before = watched.live();
            let framed = frame(depth(3));
            assert_eq!(watched.live(), before + 1);
            let depth = framed.await;
            assert_eq!(watched.live(), before);
            depth
        }),
    );
    assert_eq!(outcome, Outcome::Value(3));
    assert_eq!(counting.live(), 0);
}

#[test]
fn a_frame_that_is_sent_to_another_thread_is_freed_by_its_own_allocator() {
    let counting = Counting::new(FrameAllocator::system());
    let changes = Changes::new().allocator(FrameAllocator::new(counting.clone()));
    let mut made = None;
    let _ = sync_wait_with(changes, task(async { made = Some(frame_dyn(async { [1_u8; 100].len() })) }));
    let made = made.unwrap();
    assert_eq!(counting.live(), 1);
    let length = std::thread::spawn(move || sync_wait(task(made))).join().unwrap();
    assert_eq!(length, Outcome::Value(100));
    assert_eq!(counting.live(), 0);
}

#[test]
fn outside_a_task_the_default_allocator_is_used() {
    let framed = frame(async { 1 });
    assert!(format!("{framed:?}").contains("recycling"));
    assert_eq!(sync_wait(task(framed)), Outcome::Value(1));
}

#[test]
fn without_memory_the_future_is_handed_back_or_frame_panics() {
    let run = || {
        let changes = Changes::new().allocator(FrameAllocator::new(Bounded::new(4096)));
        sync_wait_with(
            changes,
            task(async {
                let large = [7_u8; 8192];
                let Err(future) = try_frame(async move { large[8191] }) else { panic!("there was room") };
                frame(future).await
            }),
        )
    };
    let panic = Panic::catch(run).unwrap_err();
    let said = panic.message();
    assert!(said.contains("no 8193 bytes left") || said.contains("bytes left for a framed future"), "{said}");
}

#[test]
fn a_future_that_panics_when_it_is_dropped_frees_its_memory() {
    struct Thrower(#[expect(dead_code, reason = "takes room")] u64);
    impl Drop for Thrower {
        fn drop(&mut self) {
            panic!("on the way out");
        }
    }
    let counting = Counting::new(FrameAllocator::system());
    let changes = Changes::new().allocator(FrameAllocator::new(counting.clone()));
    let outcome = sync_wait_with(
        changes,
        task(async {
            let thrower = Thrower(1);
            drop(frame(async move { drop(thrower) }));
        })
        .materialize(),
    );
    assert!(matches!(outcome.unwrap(), Outcome::Panicked(panic) if panic.message() == "on the way out"));
    assert_eq!(counting.live(), 0);
}

#[test]
fn futures_of_several_types_and_of_one_thread_fit_into_one_list() {
    let drops = Arc::new(AtomicUsize::new(0));
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (one, two) = (Counted(drops.clone()), Counted(drops.clone()));
    let number = Rc::new(2);
    let list: Vec<Framed<dyn Future<Output = i32>>> = vec![
        frame_dyn_local(async move { (drop(one), 1).1 }),
        frame_dyn_local(async move { (drop(two), *number).1 }),
        frame_dyn_local(async { 3 }),
    ];
    assert_eq!(list.len(), 3);
    drop(list);
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}
