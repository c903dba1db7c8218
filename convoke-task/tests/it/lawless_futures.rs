//! Misused futures. Safe code may drop a future while it waits, forget it, poll it after its end, and move it between tasks and threads
//! while it waits. None of that may access freed memory; and other waiters for the same event go on, unless what they need was
//! forgotten with the future.
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::lawless::waits::{Case, Waiting, all};
use convoke::env::{Changes, Local};
use convoke::env::{current, with_local};
use convoke::executor::{ExecutorRef, reschedule};
use convoke::prelude::*;
use convoke::raw::Runnable;
use convoke::sender::prelude::*;
use convoke::task::generator;
use convoke::{Panic, launch, run_on};

/// Polls it once, in the task that awaits this. True if it is done.
async fn poll_once(future: &mut Waiting) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}

/// Runs a test for each way of waiting, in a task of its own.
fn each_way<F>(test: impl Fn(Case, ThreadPool) -> F + Copy + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    for way in 0.. {
        let pool = ThreadPool::new(1).unwrap();
        let ran = sync_wait(task(async move {
            let mut cases = all(&pool);
            if way >= cases.len() {
                return false;
            }
            let case = cases.swap_remove(way);
            drop(cases);
            println!("{}", case.name);
            test(case, pool).await;
            true
        }));
        if ran == Outcome::Value(false) {
            assert!(way > 20, "there are more than 20 ways of waiting");
            return;
        }
        assert_eq!(ran, Outcome::Value(true));
    }
}

#[test]
fn futures_that_are_dropped_while_they_wait_make_way_for_others() {
    each_way(async |Case { mut one, other, fire, .. }, _pool| {
        assert!(!poll_once(&mut one).await);
        drop(one);
        fire();
        other.await;
    });
}

#[test]
fn futures_that_are_dropped_when_they_were_woken_make_way_for_others() {
    each_way(async |Case { mut one, mut other, fire, .. }, _pool| {
        assert!(!poll_once(&mut one).await);
        let ended = poll_once(&mut other).await;
        fire();
        drop(one);
        if !ended {
            other.await;
        }
    });
}

#[test]
fn futures_that_are_polled_when_they_have_ended_panic_or_wait() {
    each_way(async |Case { mut one, fire, .. }, _pool| {
        let _ = poll_once(&mut one).await;
        fire();
        while !poll_once(&mut one).await {
            checkpoint().await;
        }
        let _ = Panic::catch(|| one.as_mut().poll(&mut Context::from_waker(Waker::noop())));
    });
}

/// Where tools that look for leaks find it.
static FORGOTTEN: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// A forgotten future keeps what it owns, and a wake finds it where it was. Operations that run elsewhere are the exception: the task
/// waits for their end, which is no longer reported, so a task that has forgotten one never ends.
#[test]
fn futures_that_are_forgotten_stay_where_they_are() {
    each_way(async |Case { name, mut one, fire, .. }, _pool| {
        if !matches!(name, "run_on" | "launched" | "blocking") {
            assert!(!poll_once(&mut one).await);
            FORGOTTEN.lock().unwrap().push(one);
        }
        fire();
        for _ in 0..8 {
            checkpoint().await;
        }
    });
}

#[test]
fn futures_that_are_polled_outside_of_all_tasks_say_so() {
    each_way(async |Case { mut one, fire, .. }, pool| {
        assert!(!poll_once(&mut one).await);
        // Where there is no task, and back again.
        let thread = std::thread::spawn(move || {
            let polled = Panic::catch(|| one.as_mut().poll(&mut Context::from_waker(Waker::noop())));
            (one, polled.is_err())
        });
        let (one, panicked) = thread.join().unwrap();
        fire();
        if panicked {
            drop(one);
        } else {
            one.await;
        }
        drop(pool);
    });
}

/// Begun in one task, ended in another on another thread, while the first one waits.
#[test]
fn futures_that_are_lent_to_another_task_end_there() {
    each_way(async |Case { mut one, fire, .. }, pool| {
        assert!(!poll_once(&mut one).await);
        let there = run_on(&pool.executor(), one);
        fire();
        there.await;
    });
}

/// Begun in one task, ended in another when the first one has ended, or would have. A task waits for operations that it has begun.
#[test]
fn futures_that_are_given_to_another_task_end_there() {
    for dropped in [false, true] {
        for way in 0.. {
            let pool = ThreadPool::new(1).unwrap();
            let kept = Arc::new(Mutex::new(None));
            let (keeps, name) = (kept.clone(), Arc::new(Mutex::new("")));
            let (says, executor) = (name.clone(), pool.executor());
            let first = launch(&pool.executor()).start(async move {
                let pool = ThreadPool::new(1).unwrap();
                let mut cases = all(&pool);
                if way < cases.len() {
                    let mut case = cases.swap_remove(way);
                    *says.lock().unwrap() = case.name;
                    let _ = poll_once(&mut case.one).await;
                    *keeps.lock().unwrap() = Some((case, pool));
                }
            });
            // It may wait for an adopted operation, until the second has gone on.
            let second = launch(&executor).start(async move {
                let taken = loop {
                    if let Some(taken) = kept.lock().unwrap().take() {
                        break taken;
                    }
                    if Arc::strong_count(&kept) == 1 {
                        return false;
                    }
                    checkpoint().await;
                };
                let (Case { mut one, other, fire, .. }, pool) = taken;
                if dropped {
                    let _ = poll_once(&mut one).await;
                    drop(one);
                    fire();
                    other.await;
                } else {
                    fire();
                    one.await;
                }
                drop(pool);
                true
            });
            let ran = second.wait();
            assert_eq!(first.wait(), Outcome::Value(()), "{}", name.lock().unwrap());
            if ran == Outcome::Value(false) {
                assert!(way > 20, "there are more than 20 ways of waiting");
                break;
            }
            assert_eq!(ran, Outcome::Value(true), "{}", name.lock().unwrap());
        }
    }
}

static KEY: Local<Watches> = Local::inherited("lawless");

/// A value of the environment. It does something when it is cloned or dropped.
struct Watches(Option<[ExecutorRef; 2]>, Arc<AtomicUsize>);

impl Watches {
    /// Moves the task that runs now, by hand, while its environment is borrowed.
    fn move_task(&self) {
        if let Some(executors) = &self.0 {
            // To the one, and to the other.
            let mut moves = reschedule(&executors[self.1.load(Ordering::Relaxed) % 2]);
            let _ = std::pin::Pin::new(&mut moves).poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Clone for Watches {
    fn clone(&self) -> Self {
        self.move_task();
        // Looked at after the move: it is still there.
        self.1.fetch_add(1, Ordering::Relaxed);
        Self(None, self.1.clone())
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task that moves leaves environments behind; code that borrows one of them meanwhile can still use it.
#[test]
fn a_task_that_moves_while_its_environment_is_looked_at_does_not_free_it() {
    let pools = [ThreadPool::new(1).unwrap(), ThreadPool::new(1).unwrap()];
    for round in 0..4 {
        let executors = pools.each_ref().map(|pool| ExecutorRef::new(pool.executor()));
        let looks = Arc::new(AtomicUsize::new(0));
        let count = looks.clone();
        let program = async move {
            for _ in 0..3 {
                // The clone of the value moves the task, and then reads the value.
                drop(current::local(&KEY));
                current::env(|env| {
                    let value = env.and_then(|env| env.local(&KEY)).expect("it is there");
                    value.move_task();
                    value.1.fetch_add(1, Ordering::Relaxed);
                });
                checkpoint().await;
            }
        };
        let changes = Changes::new().local(&KEY, Watches(Some(executors), looks));
        let ran = if round % 2 == 0 {
            sync_wait_with(changes, task(program))
        } else {
            sync_wait(task(program).write_env(changes))
        };
        assert_eq!(ran, Outcome::Value(()));
        assert!(count.load(Ordering::Relaxed) >= 9);
    }
}

/// An executor that moves the task which compares it, and is looked at after that.
#[derive(Clone)]
struct Compares(ExecutorRef, Arc<AtomicUsize>);

impl PartialEq for Compares {
    fn eq(&self, other: &Self) -> bool {
        if self.1.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            let mut moves = reschedule(&self.0);
            let _ = std::pin::Pin::new(&mut moves).poll(&mut Context::from_waker(Waker::noop()));
        }
        Arc::ptr_eq(&self.1, &other.1)
    }
}

impl Executor for Compares {
    fn post(&self, runnable: Runnable) {
        self.0.post(runnable);
    }
}

#[test]
fn an_executor_that_moves_the_task_which_compares_it_is_there_until_it_has() {
    let pool = ThreadPool::new(1).unwrap();
    let x = Compares(ExecutorRef::new(pool.executor()), Arc::default());
    let ran = sync_wait(task(async move {
        for _ in 0..3 {
            // From one that is equal to one that is equal: they are compared each time.
            let _ = reschedule(&Compares(x.0.clone(), x.1.clone())).await;
            let _ = reschedule(&x).await;
        }
    }));
    assert_eq!(ran, Outcome::Value(()));
}

/// A value of the environment that panics when it goes, or comes back into the runtime.
struct Goes(bool);

static GOES: Local<Goes> = Local::inherited("goes");

impl Drop for Goes {
    fn drop(&mut self) {
        let inside = sync_wait(task(async {
            checkpoint().await;
            current::stop_requested()
        }));
        assert_eq!(inside, Outcome::Value(false));
        assert!(!self.0 || std::thread::panicking(), "lawless local");
    }
}

#[test]
fn values_of_an_environment_may_panic_or_come_back_when_they_go() {
    for panics in [false, true] {
        let ways: [fn(bool) -> Outcome<()>; 4] = [
            |panics| sync_wait_with(Changes::new().local(&GOES, Goes(panics)), task(checkpoint())),
            |panics| sync_wait(task(checkpoint()).write_env(Changes::new().local(&GOES, Goes(panics)))),
            |panics| {
                sync_wait(task(async move {
                    with_local(&GOES, Goes(panics), async { scope(async |s| s.spawn(checkpoint())).await })
                        .await;
                }))
            },
            |panics| {
                let pool = ThreadPool::new(1).unwrap();
                launch(&pool.executor()).local(&GOES, Goes(panics)).start(checkpoint()).wait()
            },
        ];
        for (way, run) in ways.into_iter().enumerate() {
            println!("{way} {panics}");
            match Panic::catch(|| run(panics)) {
                Ok(outcome) => assert!(outcome == Outcome::Value(()) || panics),
                Err(panic) => assert!(panics && panic.message().contains("lawless local"), "{panic}"),
            }
        }
    }
}

/// A value that must not be seen by another thread, counted.
struct Item(Arc<AtomicUsize>, bool);

impl Drop for Item {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        assert!(!self.1, "lawless item");
    }
}

/// The room of a generator is empty between polls, also after a body that yields and panics in the same poll.
#[test]
fn a_body_that_yields_and_panics_at_once_leaves_nothing_behind() {
    let dropped = Arc::new(AtomicUsize::new(0));
    for panics in [false, true] {
        let item = Item(dropped.clone(), panics);
        let ran = sync_wait(task(async move {
            let mut values = generator(async move |y| {
                let fails = async { panic!("lawless body") };
                let ((), ()) = join((y.yield_value(item), fails)).await;
            });
            let next = poll_fn(|cx| {
                let mut next = std::pin::pin!(values.next());
                Poll::Ready(Panic::catch(|| next.as_mut().poll(cx).is_ready()))
            });
            assert!(next.await.is_err());
            std::thread::spawn(move || drop(values)).join().is_ok()
        }));
        assert_eq!(ran, Outcome::Value(true));
    }
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn a_yielder_that_was_carried_away_panics_where_it_is_used() {
    let ran = sync_wait(task(async {
        let mut carried = None;
        let mut values = generator(async |y| {
            carried = Some(y);
            y.yield_value(1).await;
            y.yield_value(2).await;
        });
        assert_eq!(values.next().await, Some(1));
        drop(values);
        let y = carried.unwrap();
        let poll = |future: &mut (dyn Future<Output = ()> + Unpin)| {
            Panic::catch(|| std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))).is_err()
        };
        let here = poll(&mut y.yield_value(3));
        let there = std::thread::spawn(move || poll(&mut y.yield_value(3))).join().unwrap();
        let mut others = generator(async |z| {
            let inside = poll(&mut y.yield_value(3));
            z.yield_value(inside).await;
        });
        (here, there, others.next().await)
    }));
    assert_eq!(ran, Outcome::Value((true, true, Some(true))));
}
