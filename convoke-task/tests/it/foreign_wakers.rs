//! Wakers are code of the program. One that panics when it is called must not keep others from being woken, and none is
//! called, cloned or dropped while a lock is held: it may come back into what it waits for.

#![allow(unsafe_code)]
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::{
    Barrier, Event, Mutex, OnceCell, RwLock, Semaphore, lossless_broadcast, mpmc, mpsc, oneshot, watch,
};
use convoke::testing::{Clockwork, Sequencer};

/// Counts its calls, and panics at each if it is told to.
#[derive(Default)]
struct Counted {
    wakes: AtomicUsize,
    panics: bool,
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "a waker that panics");
    }
}

/// A future that waits, with a waker of its own.
struct Waits<'a> {
    future: Pin<Box<dyn Future<Output = ()> + 'a>>,
    counted: Arc<Counted>,
}

impl<'a> Waits<'a> {
    #[track_caller]
    fn new(future: impl Future<Output = ()> + 'a, panics: bool) -> Self {
        let counted = Arc::new(Counted { wakes: AtomicUsize::new(0), panics });
        let mut waits = Self { future: Box::pin(future), counted };
        assert!(!waits.is_ready(), "it does not wait");
        waits
    }

    fn is_ready(&mut self) -> bool {
        let waker = Waker::from(self.counted.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
    }
}

/// Has `futures` wait, the first of them with a waker that panics; calls `trigger`; and expects all to be woken, and to end.
#[track_caller]
fn all_are_woken<'a>(
    futures: impl IntoIterator<Item = Pin<Box<dyn Future<Output = ()> + 'a>>>,
    trigger: impl FnOnce(),
) {
    let waits = |(place, future)| Waits::new(future, place == 0);
    let mut waiting: Vec<_> = futures.into_iter().enumerate().map(waits).collect();
    trigger();
    let wakes: Vec<_> = waiting.iter().map(|waits| waits.counted.wakes.load(Ordering::Relaxed)).collect();
    assert_eq!(wakes, vec![1; waiting.len()], "a waker that panics has kept others from being woken");
    assert!(waiting.iter_mut().all(Waits::is_ready));
}

/// Makes three futures of one kind.
fn three<'a, F: Future<Output = ()> + 'a>(
    make: impl Fn() -> F,
) -> [Pin<Box<dyn Future<Output = ()> + 'a>>; 3] {
    [(); 3].map(|()| -> Pin<Box<dyn Future<Output = ()> + 'a>> { Box::pin(make()) })
}

#[test]
fn permits_reach_all_who_wait_although_the_first_waker_panics() {
    let semaphore = Semaphore::new(0);
    let acquire = || async { semaphore.acquire().await.forget() };
    all_are_woken(three(acquire), || semaphore.add_permits(3));
    let lock = RwLock::new(());
    let writes = lock.try_write();
    all_are_woken(three(|| async { drop(lock.read().await) }), || drop(writes));
}

#[test]
fn a_lock_is_given_back_while_a_panic_unwinds_and_the_next_waker_panics_too() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock();
    let mut next = Waits::new(async { drop(mutex.lock().await) }, true);
    // A second panic on the way would end the process.
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _guard = guard;
        panic!("on purpose");
    }));
    assert!(unwound.is_err() && next.is_ready());
}

#[test]
fn an_event_a_barrier_and_a_cell_wake_all_who_wait_although_the_first_waker_panics() {
    let event = Event::new();
    all_are_woken(three(|| event.wait()), || event.set());
    let barrier = Barrier::new(4);
    all_are_woken(three(|| async { assert!(!barrier.wait().await.is_leader()) }), || {
        assert!(pin!(barrier.wait()).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    });
    let cell = OnceCell::new();
    all_are_woken(three(|| async { assert_eq!(*cell.wait().await, 7) }), || cell.set(7).unwrap());
}

#[test]
fn closing_a_channel_wakes_all_who_wait_although_the_first_waker_panics() {
    let (sender, receiver) = mpmc::channel(1);
    let receivers = [(); 3].map(|()| receiver.clone());
    let receive = receivers.iter().map(|receiver| -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async { assert_eq!(receiver.recv().await, None::<u32>) })
    });
    all_are_woken(receive, || drop(sender));

    let (sender, receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    all_are_woken(three(|| async { assert!(sender.send(1).await.is_err()) }), || drop(receiver));

    let (sender, receiver) = lossless_broadcast::channel(1);
    sender.try_send(0).unwrap();
    all_are_woken(three(|| async { assert!(sender.send(1).await.is_err()) }), || receiver.close());

    let (sender, receiver) = watch::channel(0);
    let mut receivers = [(); 3].map(|()| receiver.clone());
    let changes = receivers.iter_mut().map(|receiver| -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async { assert!(receiver.changed().await.is_ok()) })
    });
    all_are_woken(changes, || sender.send(1).unwrap());
}

#[test]
fn a_receiver_that_is_dropped_leaves_the_channel_although_a_sender_s_waker_panics() {
    let (sender, receiver) = lossless_broadcast::channel(2);
    sender.try_send(0).unwrap();
    sender.try_send(1).unwrap();
    let sends = || async { assert!(sender.send(2).await.is_err()) };
    let mut first = Waits::new(sends(), true);
    let mut second = Waits::new(sends(), false);
    drop(receiver);
    assert_eq!(sender.receivers(), 0);
    assert!(first.is_ready() && second.is_ready());
}

#[test]
fn a_message_is_sent_and_received_although_the_other_side_s_waker_panics() {
    let (sender, mut receiver) = mpsc::channel(1);
    let mut receives = Waits::new(async { assert_eq!(receiver.recv().await, Some(1)) }, true);
    sender.try_send(1).unwrap();
    assert!(receives.is_ready());
    drop(receives);
    let (sender, mut receiver) = oneshot::channel();
    let mut receives = Waits::new(async { assert_eq!(receiver.recv().await, Some(1)) }, true);
    sender.send(1).unwrap();
    assert!(receives.is_ready());
}

/// Polls once with a waker that panics when it is called, whatever the task's is.
async fn poll_with_a_waker_that_panics<F: Future>(mut future: Pin<&mut F>) {
    let waker = Waker::from(Arc::new(Counted { wakes: AtomicUsize::new(0), panics: true }));
    poll_fn(|_| {
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[test]
fn a_scope_ends_although_the_waker_that_awaits_its_child_panics() {
    let ended = convoke::testing::run(async {
        scope(async |s| {
            let mut child = pin!(s.spawn_future(async { checkpoint().await }));
            poll_with_a_waker_that_panics(child.as_mut()).await;
            checkpoint().await;
            checkpoint().await;
            child.await;
            1
        })
        .await
    });
    assert_eq!(ended, 1);
}

#[test]
fn a_local_scope_ends_although_the_waker_that_awaits_its_child_panics() {
    let ended = convoke::testing::run(async {
        local_scope(async |s| {
            let mut child = pin!(s.spawn_future(async { checkpoint().await }));
            poll_with_a_waker_that_panics(child.as_mut()).await;
            checkpoint().await;
            checkpoint().await;
            child.await;
            1
        })
        .await
    });
    assert_eq!(ended, 1);
}

#[test]
fn a_child_s_result_counts_although_the_waker_that_awaits_it_panics() {
    let results = convoke::testing::run(async {
        scope(async |s| {
            let mut results = s.results();
            for n in 0..2 {
                results.spawn(async move {
                    checkpoint().await;
                    n
                });
            }
            poll_with_a_waker_that_panics(pin!(results.next())).await;
            let mut sum = 0;
            while let Some(n) = results.next().await {
                sum += n;
            }
            let mut started = pin!(s.child().spawn_until_ready(async |ready| {
                checkpoint().await;
                ready.report(5);
            }));
            poll_with_a_waker_that_panics(started.as_mut()).await;
            checkpoint().await;
            checkpoint().await;
            sum + started.await.unwrap()
        })
        .await
    });
    assert_eq!(results, 6);
}

#[test]
fn a_scope_ends_although_the_waker_of_who_awaits_it_panics() {
    let ended = convoke::testing::run(async {
        let mut scope = pin!(scope(async |s| {
            for _ in 0..3 {
                s.spawn(async { checkpoint().await });
            }
            1
        }));
        poll_with_a_waker_that_panics(scope.as_mut()).await;
        for _ in 0..4 {
            checkpoint().await;
        }
        scope.await
    });
    assert_eq!(ended, 1);
}

#[test]
fn a_sequence_goes_on_although_the_waker_of_a_step_panics() {
    let sequencer = Sequencer::new();
    let first = sequencer.at(0);
    let mut waits = Waits::new(async { drop(sequencer.at(1).await) }, true);
    let turn = convoke::testing::run(first);
    drop(turn);
    assert!(waits.is_ready());
}

/// A waker that runs something when it is cloned, and when it is dropped.
struct Intrusive {
    cloned: Box<dyn Fn() + Send + Sync>,
    dropped: Box<dyn Fn() + Send + Sync>,
}

fn intrusive_waker(waker: Arc<Intrusive>) -> Waker {
    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: the data of these wakers is an `Arc<Intrusive>` that is given up with the waker.
        let waker = unsafe { Arc::from_raw(data.cast::<Intrusive>()) };
        let cloned = waker.clone();
        std::mem::forget(waker);
        (cloned.cloned)();
        RawWaker::new(Arc::into_raw(cloned).cast(), &TABLE)
    }
    unsafe fn drop_waker(data: *const ()) {
        // SAFETY: the data of these wakers is an `Arc<Intrusive>`, and a waker is dropped once.
        let waker = unsafe { Arc::from_raw(data.cast::<Intrusive>()) };
        (waker.dropped)();
    }
    unsafe fn wake_by_ref(_: *const ()) {}
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, drop_waker, wake_by_ref, drop_waker);
    // SAFETY: the functions keep the contract: each waker is one count of the `Arc`.
    unsafe { Waker::from_raw(RawWaker::new(Arc::into_raw(waker).cast(), &TABLE)) }
}

#[test]
fn a_waker_wakes_a_branch_of_the_join_that_clones_and_drops_it() {
    let branch = Arc::new(StdMutex::new(None::<Waker>));
    let woken = Arc::new(AtomicUsize::new(0));
    let wake_branch = || -> Box<dyn Fn() + Send + Sync> {
        let (branch, woken) = (branch.clone(), woken.clone());
        Box::new(move || {
            let waker = branch.lock().unwrap().clone();
            if let Some(waker) = waker {
                // Into the lock of the branches' wakers.
                waker.wake();
                woken.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let waker = intrusive_waker(Arc::new(Intrusive { cloned: wake_branch(), dropped: wake_branch() }));
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    let outcome = sync_wait(task(async move {
        let waits = poll_fn(move |cx: &mut Context<'_>| {
            *branch.lock().unwrap() = Some(cx.waker().clone());
            counted.fetch_add(1, Ordering::Relaxed);
            Poll::<()>::Pending
        });
        let mut joined = pin!(join(vec![waits]));
        poll_fn(|_| {
            for _ in 0..3 {
                assert!(joined.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            }
            Poll::Ready(())
        })
        .await;
    }));
    assert_eq!(outcome, Outcome::Value(()));
    assert!(woken.load(Ordering::Relaxed) > 0 && polls.load(Ordering::Relaxed) == 3);
}

#[test]
fn a_waker_asks_a_sequencer_which_keeps_it() {
    let sequencer = Sequencer::new();
    let asks = || -> Box<dyn Fn() + Send + Sync> {
        let sequencer = sequencer.clone();
        Box::new(move || _ = sequencer.step())
    };
    let waker = intrusive_waker(Arc::new(Intrusive { cloned: asks(), dropped: asks() }));
    let (mut second, mut third) = (Box::pin(sequencer.at(1)), Box::pin(sequencer.at(2)));
    for _ in 0..2 {
        assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(third.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let turn = convoke::testing::run(sequencer.at(0));
    drop(turn);
    drop(second);
    assert_eq!(sequencer.step(), 1);
}

#[test]
fn a_timer_is_called_although_the_one_before_wakes_a_waker_that_panics() {
    let clockwork = Clockwork::new();
    let executor = clockwork.clone();
    let slept = Arc::new(AtomicBool::new(false));
    let sleeps = slept.clone();
    let launched = launch(&clockwork).start(async move {
        let duration = std::time::Duration::from_secs(1);
        let mut first = pin!(IntoFuture::into_future(sleep(duration)));
        poll_with_a_waker_that_panics(first.as_mut()).await;
        sleep(duration).await;
        sleeps.store(true, Ordering::Relaxed);
    });
    executor.advance(std::time::Duration::from_secs(1));
    assert!(slept.load(Ordering::Relaxed));
    assert_eq!(launched.wait(), Outcome::Value(()));
}
