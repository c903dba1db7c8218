//! Misbehaving wakers. A foreign combinator polls a future of ours with any waker: one that panics in any of its functions, that drops
//! or wakes its target at once, that differs in each poll, or that is called after the end. None of that may disturb other waiters, or
//! access freed memory: two futures wait for one event, one of them with such a waker, and the other one goes on in any case.

#![allow(unsafe_code)]
use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;

use crate::lawless::waits::{Case, Waiting, all};
use convoke::Panic;
use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::sender::prelude::*;

/// Misbehaviour of a foreign waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Nothing,
    PanicsInClone,
    PanicsInWake,
    PanicsInDrop,
    /// Wakes from a thread of its own, and waits for that.
    WakesElsewhere,
}

/// A waker around another.
struct Foreign {
    inner: Waker,
    does: Does,
}

impl Foreign {
    fn waker(inner: Waker, does: Does) -> Waker {
        let data = Arc::into_raw(Arc::new(Self { inner, does })).cast();
        // SAFETY: the functions below take it for what it is, count it, and may be called from any thread.
        unsafe { Waker::from_raw(RawWaker::new(data, &FOREIGN)) }
    }

    fn wake(&self) {
        if self.does == Does::WakesElsewhere {
            let inner = self.inner.clone();
            thread::spawn(move || inner.wake()).join().unwrap();
        } else {
            self.inner.wake_by_ref();
        }
        assert_ne!(self.does, Does::PanicsInWake, "lawless wake");
    }
}

static FOREIGN: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: `data` is the pointer of an `Arc` (`Foreign::waker` made it), and the cloned waker owns a count.
        let this = unsafe { &*data.cast::<Foreign>() };
        assert_ne!(this.does, Does::PanicsInClone, "lawless clone");
        // SAFETY: `data` is of an `Arc` with at least the count of the waker that is cloned.
        unsafe { Arc::increment_strong_count(data.cast::<Foreign>()) };
        RawWaker::new(data, &FOREIGN)
    },
    // SAFETY: `data` is the pointer of an `Arc` (`Foreign::waker` made it), and `wake` gives up the waker's count.
    |data| unsafe { Arc::from_raw(data.cast::<Foreign>()) }.wake(),
    // SAFETY: `data` is of an `Arc` whose count the waker keeps while it is borrowed.
    |data| unsafe { &*data.cast::<Foreign>() }.wake(),
    |data| {
        // SAFETY: `data` is the pointer of an `Arc` (`Foreign::waker` made it), and the dropped waker gives up its count.
        let does = unsafe { Arc::from_raw(data.cast::<Foreign>()) }.does;
        assert!(does != Does::PanicsInDrop || thread::panicking(), "lawless drop");
    },
);

/// Runs a test for each way of waiting, by itself. A panic of a waker may end the program's task; the other waiter has been woken,
/// whatever the first one did.
fn each_way<F>(test: impl Fn(Waiting, Box<dyn FnOnce() + Send>) -> F + Copy + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send,
{
    let mut ways = 0;
    while run_way(ways, test) {
        ways += 1;
    }
    assert!(ways > 20, "there are more than 20 ways of waiting");
}

/// Runs it for the way of this number. False if there is none.
fn run_way<F>(
    way: usize,
    test: impl Fn(Waiting, Box<dyn FnOnce() + Send>) -> F + Send + Sync + 'static,
) -> bool
where
    F: Future<Output = ()> + Send,
{
    let pool = ThreadPool::new(1).unwrap();
    let (went_on, exists) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (says, found) = (went_on.clone(), exists.clone());
    let ran = Panic::catch(|| {
        sync_wait(task(async move {
            let mut cases = all(&pool);
            if way >= cases.len() {
                return;
            }
            found.store(true, Ordering::Relaxed);
            let Case { name, one, other, fire } = cases.swap_remove(way);
            drop(cases);
            println!("{name}");
            scope(async |s| {
                let start = s.clone();
                // Waits behind the first.
                let fire = move || {
                    start.spawn(async move {
                        other.await;
                        says.store(true, Ordering::Relaxed);
                    });
                    fire();
                };
                test(one, Box::new(fire)).await;
            })
            .await;
        }))
    });
    let exists = exists.load(Ordering::Relaxed);
    match ran {
        Ok(ran) => assert_eq!(ran, Outcome::Value(())),
        Err(panic) => assert!(panic.message().contains("lawless"), "{panic}"),
    }
    assert!(!exists || went_on.load(Ordering::Relaxed), "the other one waits for ever");
    exists
}

/// Polls until it is done or panics, with another such waker in each poll. What it waits for comes after the first.
async fn poll_with(does: Does, one: Waiting, fire: Box<dyn FnOnce() + Send>) {
    let (mut one, mut fire) = (Some(one), Some(fire));
    poll_fn(|cx| {
        let Some(future) = &mut one else { return Poll::Ready(()) };
        let waker = Foreign::waker(cx.waker().clone(), does);
        let polled = Panic::catch(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
        let _ = Panic::catch(|| drop(waker));
        if !matches!(polled, Ok(Poll::Pending)) {
            // Of what has panicked there is nothing left to be polled.
            let _ = Panic::catch(|| one = None);
        }
        if let Some(fire) = fire.take() {
            // A panic of a waker may reach the code that wakes.
            let _ = Panic::catch(fire);
        }
        // A future that could not store a waker is not woken.
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn wakers_that_are_others_in_each_poll_are_all_the_same() {
    each_way(|one, fire| poll_with(Does::Nothing, one, fire));
}

#[test]
fn wakers_that_panic_when_they_are_cloned_harm_nobody_else() {
    each_way(|one, fire| poll_with(Does::PanicsInClone, one, fire));
}

#[test]
fn wakers_that_panic_when_they_wake_harm_nobody_else() {
    each_way(|one, fire| poll_with(Does::PanicsInWake, one, fire));
}

#[test]
fn wakers_that_panic_when_they_are_dropped_harm_nobody_else() {
    each_way(|one, fire| poll_with(Does::PanicsInDrop, one, fire));
}

#[test]
fn wakers_that_wake_on_another_thread_wake() {
    each_way(|one, fire| poll_with(Does::WakesElsewhere, one, fire));
}

/// A waker that has its future with it, and does something with it when it is called.
struct WithFuture {
    future: Arc<Mutex<Option<Waiting>>>,
    inner: Waker,
    polls: bool,
    woken: AtomicUsize,
}

impl Wake for WithFuture {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        // While it is polled it is not to be had.
        if let Ok(mut slot) = self.future.try_lock() {
            if !self.polls {
                drop(slot.take());
            } else if let Some(future) = &mut *slot {
                // Perhaps outside of all tasks, perhaps in another.
                let polled = Panic::catch(|| future.as_mut().poll(&mut Context::from_waker(Waker::noop())));
                if !matches!(polled, Ok(Poll::Pending)) {
                    let _ = Panic::catch(|| *slot = None);
                }
            }
        }
        self.inner.wake_by_ref();
    }
}

async fn wakes_with_future(polls: bool, one: Waiting, fire: Box<dyn FnOnce() + Send>) {
    let (slot, mut fire) = (Arc::new(Mutex::new(Some(one))), Some(fire));
    poll_fn(|cx| {
        let (future, inner) = (slot.clone(), cx.waker().clone());
        let waker = Waker::from(Arc::new(WithFuture { future, inner, polls, woken: AtomicUsize::new(0) }));
        let mut taken = slot.lock().unwrap();
        let Some(future) = &mut *taken else { return Poll::Ready(()) };
        let polled = Panic::catch(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
        if !matches!(polled, Ok(Poll::Pending)) {
            let _ = Panic::catch(|| *taken = None);
        }
        drop(taken);
        if let Some(fire) = fire.take() {
            let _ = Panic::catch(fire);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn wakers_that_drop_their_future_when_they_are_called_harm_nobody_else() {
    each_way(|one, fire| wakes_with_future(false, one, fire));
}

#[test]
fn wakers_that_poll_their_future_when_they_are_called_harm_nobody_else() {
    each_way(|one, fire| wakes_with_future(true, one, fire));
}

#[test]
fn wakers_of_a_task_that_has_ended_wake_nobody() {
    let run_loop = RunLoop::new();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeps = kept.clone();
    let ran = run_loop.block_on(async move {
        scope(async |s| {
            for _ in 0..3 {
                let keeps = keeps.clone();
                s.child().local().spawn(poll_fn(move |cx| {
                    keeps.lock().unwrap().extend([cx.waker().clone(), cx.waker().clone()]);
                    Poll::Ready(())
                }));
            }
        })
        .await;
    });
    assert_eq!(ran, Outcome::Value(()));
    let all = mem::take(&mut *kept.lock().unwrap());
    let elsewhere = all.clone();
    thread::spawn(move || elsewhere.into_iter().for_each(Waker::wake)).join().unwrap();
    all.iter().for_each(Waker::wake_by_ref);
    let _ = run_loop.run_ready();
    drop(run_loop);
    all.iter().for_each(Waker::wake_by_ref);
    thread::spawn(move || all.into_iter().for_each(Waker::wake)).join().unwrap();
}

/// A child is told of by its foreign waker when it delivers: its scope does not wait for ever if that panics.
#[test]
fn a_waker_that_panics_while_a_child_delivers_does_not_hold_up_its_scope() {
    // Handles that are never dropped, and that a tool does not take for leaks.
    static KEPT: Mutex<Vec<Box<dyn Send>>> = Mutex::new(Vec::new());
    let heard = Arc::new(AtomicBool::new(false));
    let hears = heard.clone();
    let ran = Panic::catch(|| {
        sync_wait(task(async move {
            scope(async |s| {
                let mut child = Box::pin(s.spawn_future(async { checkpoint().await }));
                poll_fn(|cx| {
                    let waker = Foreign::waker(cx.waker().clone(), Does::PanicsInWake);
                    Poll::Ready(child.as_mut().poll(&mut Context::from_waker(&waker)).is_ready())
                })
                .await;
                KEPT.lock().unwrap().push(Box::new(child));
            })
            .await;
            hears.store(true, Ordering::Relaxed);
        }))
    });
    // The panic may go to the executor of the child, which is ours here; nobody waits for ever.
    drop(ran);
    assert!(heard.load(Ordering::Relaxed));
}
