//! Awaited senders behind `impl AwaitableSender`, as safe code may misuse them: they are dropped at any poll, polled by another
//! task, outside of tasks and after their end, and forgotten; the way to their future is code of the program, which panics or
//! returns another one. The way of their error to a result is not: nobody else can implement `AwaitError`.

#![allow(unsafe_code)]

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use convoke::prelude::{ThreadPool, launch};
use convoke::sender::prelude::*;
use convoke::sender::{AwaitableSender, Awaited, sync_wait};
use convoke::task::task;
use convoke::{Panic, checkpoint};
use convoke_sender::Receiver;
use convoke_sender::testing::Gate;

/// A sender whose type nobody knows, over a gate.
fn through(gate: &Gate<u32>) -> impl AwaitableSender<Value = u32, Error = Never> + use<> {
    gate.sender().then(|n| n + 1).boxed()
}

/// One whose type says that it completes inline, and one that completes on another thread.
fn inline() -> impl AwaitableSender<Value = u32, Error = Never> {
    just(1).then(|n| n + 1)
}

fn elsewhere(pool: &ThreadPool) -> impl AwaitableSender<Value = u32, Error = Never> + use<> {
    schedule(&pool.executor()).then(|()| 2)
}

type Waiting = Pin<Box<dyn Future<Output = u32> + Send>>;

/// The futures of three such senders, with what completes the one that waits.
fn all(pool: &ThreadPool) -> (Vec<Waiting>, Gate<u32>) {
    let gate = Gate::new();
    let waiting = through(&gate).into_future();
    (vec![Box::pin(inline().into_future()), Box::pin(elsewhere(pool).into_future()), Box::pin(waiting)], gate)
}

/// Polls it once, in the task that awaits this.
async fn poll_once(waiting: &mut Waiting) -> Poll<u32> {
    poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await
}

#[test]
fn dropped_before_and_after_the_first_poll_the_task_waits_for_the_work_alone() {
    let pool = ThreadPool::new(1).unwrap();
    for polls in 0..3 {
        let (mut waiting, gate) = all(&pool);
        let completes = gate.clone();
        let outcome = sync_wait(task(async move {
            for one in &mut waiting {
                for _ in 0..polls {
                    if poll_once(one).await.is_ready() {
                        break;
                    }
                }
            }
            // The work behind the gate is asked to stop, and is then in nobody's way.
            drop(waiting);
            completes.complete(Outcome::Value(7));
            checkpoint().await;
            "went on"
        }));
        assert_eq!(outcome, Outcome::Value("went on"), "{polls}");
    }
}

#[test]
fn polled_after_their_end_they_panic_and_the_task_goes_on() {
    let pool = ThreadPool::new(1).unwrap();
    let (mut waiting, gate) = all(&pool);
    let outcome = sync_wait(task(async move {
        let mut sum = 0;
        for one in &mut waiting {
            sum += loop {
                gate.complete(Outcome::Value(7));
                match poll_once(one).await {
                    Poll::Ready(n) => break n,
                    Poll::Pending => checkpoint().await,
                }
            };
            let again = poll_fn(|cx| Poll::Ready(Panic::catch(|| one.as_mut().poll(cx)).is_err()));
            assert!(again.await, "polled again");
        }
        checkpoint().await;
        sum
    }));
    assert_eq!(outcome, Outcome::Value(2 + 2 + 8));
}

/// Work that one task has begun stays that task's, which waits until the other one has done with it.
#[test]
fn begun_in_one_task_they_end_in_another_or_say_why_not() {
    let pool = ThreadPool::new(2).unwrap();
    let (mut waiting, gate) = all(&pool);
    // The inline one ends at its first poll.
    drop(waiting.remove(0));
    let executor = pool.executor();
    let outcome = sync_wait(task(async move {
        for one in &mut waiting {
            assert!(poll_once(one).await.is_pending() || gate.asked_to_stop().is_none());
        }
        let there = launch(&executor).start(async move {
            let mut ends = 0;
            for mut one in waiting {
                for _ in 0..3 {
                    gate.complete(Outcome::Value(7));
                    let polled = poll_fn(|cx| Poll::Ready(Panic::catch(|| one.as_mut().poll(cx)))).await;
                    match polled {
                        Ok(Poll::Pending) => checkpoint().await,
                        _ => {
                            ends += 1;
                            break;
                        }
                    }
                }
            }
            ends
        });
        there.await <= 2
    }));
    assert_eq!(outcome, Outcome::Value(true));
}

#[test]
fn outside_of_all_tasks_only_inline_work_is_done() {
    let pool = ThreadPool::new(1).unwrap();
    let (waiting, _gate) = all(&pool);
    let ends: Vec<_> = waiting
        .into_iter()
        .map(|mut one| Panic::catch(move || one.as_mut().poll(&mut Context::from_waker(Waker::noop()))).ok())
        .collect();
    assert_eq!(ends, [Some(Poll::Ready(2)), None, None]);
}

/// Where tools that look for leaks find it.
static FORGOTTEN: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// A task that forgets one that is under way does not end: `lawless_futures` says so of all operations.
#[test]
fn forgotten_before_the_first_poll_and_after_the_end_they_stay() {
    let pool = ThreadPool::new(1).unwrap();
    let outcome = sync_wait(task(async move {
        let (unbegun, _gate) = all(&pool);
        FORGOTTEN.lock().unwrap().extend(unbegun);
        let (mut ended, gate) = all(&pool);
        for one in &mut ended {
            while poll_once(one).await.is_pending() {
                gate.complete(Outcome::Value(7));
                checkpoint().await;
            }
        }
        FORGOTTEN.lock().unwrap().extend(ended);
        checkpoint().await;
    }));
    assert_eq!(outcome, Outcome::Value(()));
}

/// A sender whose way to its future is code of the program.
struct Fickle(fn() -> Self, u32);

// SAFETY: rules 1 and 2 of `Sender` hold for the operation of `just`, and its `COMPLETES` is not passed on.
unsafe impl Sender for Fickle {
    type Value = u32;
    type Error = Never;
    type Operation<R: Receiver<u32, Never>> =
        <convoke::sender::algorithm::just::Just<u32> as Sender>::Operation<R>;

    fn connect<R: Receiver<u32, Never>>(self, receiver: R) -> Self::Operation<R> {
        just(self.1).connect(receiver)
    }
}

impl IntoFuture for Fickle {
    type Output = u32;
    type IntoFuture = Awaited<Self>;

    fn into_future(self) -> Awaited<Self> {
        Awaited::new((self.0)())
    }
}

#[test]
fn the_way_to_the_future_may_panic_or_lead_to_another_sender() {
    fn awaitable(make: fn() -> Fickle) -> impl AwaitableSender<Value = u32, Error = Never> {
        Fickle(make, 1)
    }
    let other = sync_wait(task(async { awaitable(|| Fickle(|| unreachable!("made once"), 2)).await }));
    assert_eq!(other, Outcome::Value(2));
    let panicked = Panic::catch(|| sync_wait(task(async { awaitable(|| panic!("no future")).await })));
    assert_eq!(panicked.unwrap_or_else(Outcome::Panicked), Outcome::Panicked(Panic::new("no future")));
}
