//! `select!` over branches that safe code may write: they panic in a poll and when they are dropped, return another future
//! than they are, wake others at the wrong time, are dropped and forgotten at any poll, and polled after their end.

use std::cell::Cell;
use std::future::{Ready, pending, poll_fn, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use convoke::Panic;
use convoke::prelude::*;
use convoke::select;
use convoke::task::forever;

type Selecting<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Polls it once, in the task that awaits this.
async fn poll_once<T>(selecting: &mut Selecting<T>) -> Poll<T> {
    poll_fn(|cx| Poll::Ready(selecting.as_mut().poll(cx))).await
}

/// Runs a program that may panic.
fn outcome_of<T>(program: impl Future<Output = T>) -> Outcome<T> {
    Panic::catch(|| block_on(program)).unwrap_or_else(Outcome::Panicked)
}

/// A resource whose clean-up waits, and is counted.
struct Closes(Arc<AtomicUsize>);

impl AsyncClose for Closes {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        checkpoint().await;
        self.0.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// A branch that holds a resource for ever.
async fn holds(closed: Arc<AtomicUsize>) {
    using(Closes(closed), async |_| pending::<()>().await).await;
}

/// Panics when it is dropped.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("a destructor");
        }
    }
}

#[test]
fn a_branch_that_panics_is_the_outcome_after_the_others_have_closed() {
    let closed = Arc::new(AtomicUsize::new(0));
    let holder = closed.clone();
    let outcome = outcome_of(async move {
        select! {
            () = holds(holder) => unreachable!("it never ends"),
            () = async {
                checkpoint().await;
                panic!("a branch")
            } => unreachable!("it has no value"),
        }
    });
    assert!(matches!(outcome, Outcome::<()>::Panicked(_)));
    assert_eq!(closed.load(Relaxed), 1);
}

#[test]
fn a_loser_whose_destructor_panics_does_not_keep_the_others_from_closing() {
    let closed = Arc::new(AtomicUsize::new(0));
    let holders = [closed.clone(), closed.clone()];
    let outcome = outcome_of(async move {
        let [first, second] = holders;
        select! {
            () = holds(first) => 0,
            () = async {
                let _bomb = PanicsOnDrop;
                forever().await
            } => 1,
            () = holds(second) => 2,
            () = checkpoint() => 3,
        }
    });
    assert!(matches!(outcome, Outcome::Panicked(_)), "{outcome:?}");
    assert_eq!(closed.load(Relaxed), 2);
}

#[test]
fn a_winner_whose_destructor_panics_is_a_panic_of_the_select() {
    /// Ready at once, and panics when it is dropped.
    struct Winner(PanicsOnDrop);
    impl Future for Winner {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            let PanicsOnDrop = &self.0;
            Poll::Ready(())
        }
    }
    let closed = Arc::new(AtomicUsize::new(0));
    let holder = closed.clone();
    let outcome = outcome_of(async move {
        select! {
            () = holds(holder) => (),
            () = Winner(PanicsOnDrop) => (),
        }
    });
    assert!(matches!(outcome, Outcome::Panicked(_)), "{outcome:?}");
    assert_eq!(closed.load(Relaxed), 1);
}

#[test]
fn what_makes_a_branch_may_panic_or_be_another_future_each_time() {
    struct Fickle(bool);
    impl IntoFuture for Fickle {
        type Output = u32;
        type IntoFuture = Ready<u32>;
        fn into_future(self) -> Ready<u32> {
            assert!(self.0, "it is no future after all");
            ready(7)
        }
    }
    let select = |good| {
        outcome_of(async move {
            select! {
                n = Fickle(good) => n,
                () = forever() => 0,
            }
        })
    };
    assert_eq!(select(true), Outcome::Value(7));
    assert!(matches!(select(false), Outcome::Panicked(_)));
}

/// A program with two resources in branches, and a winner after some turns.
fn selecting(closed: &Arc<AtomicUsize>) -> Selecting<u32> {
    let (first, second) = (closed.clone(), closed.clone());
    Box::pin(async move {
        select! {
            () = holds(first) => 1,
            () = async {
                checkpoint().await;
                checkpoint().await;
            } => 2,
            () = holds(second) => 3,
        }
    })
}

/// As everywhere: who drops what is under way, and does not ask it to stop, cuts its clean-up short, which is reported.
#[test]
fn dropped_at_any_poll_its_branches_are_dropped_with_it() {
    let mut cut = 0;
    for polls in 0.. {
        let closed = Arc::new(AtomicUsize::new(0));
        let mut selecting = selecting(&closed);
        let ended = block_on(async move {
            for _ in 0..polls {
                if let Poll::Ready(value) = poll_once(&mut selecting).await {
                    return Some(value);
                }
                checkpoint().await;
            }
            None
        });
        let ended = ended.unwrap();
        let closed_all = closed.load(Relaxed) == 2;
        assert_eq!(closed_all, ended.is_some(), "{polls} polls");
        assert_eq!(Arc::strong_count(&closed), 1, "{polls} polls: all is dropped");
        cut += usize::from(ended.is_none());
        if let Some(value) = ended {
            assert_eq!(value, 2);
            break;
        }
    }
    assert!(cut >= 3, "{cut} polls are too few to be a test");
}

#[test]
fn polled_after_its_end_it_panics_and_the_task_goes_on() {
    let closed = Arc::new(AtomicUsize::new(0));
    let mut selecting = selecting(&closed);
    let outcome = block_on(async move {
        while poll_once(&mut selecting).await.is_pending() {
            checkpoint().await;
        }
        let again = poll_fn(|cx| Poll::Ready(Panic::catch(|| selecting.as_mut().poll(cx)).is_err())).await;
        checkpoint().await;
        again
    });
    assert_eq!(outcome, Outcome::Value(true));
}

/// Where tools that look for leaks find it.
static FORGOTTEN: Mutex<Vec<Selecting<()>>> = Mutex::new(Vec::new());
static WAKERS: Mutex<Vec<Waker>> = Mutex::new(Vec::new());

#[test]
fn forgotten_it_stays_and_wakers_of_its_branches_outlive_it() {
    async fn leaves_its_waker() {
        poll_fn(|cx| {
            WAKERS.lock().unwrap().push(cx.waker().clone());
            Poll::<()>::Pending
        })
        .await;
    }
    let select = || -> Selecting<()> {
        Box::pin(async {
            select! {
                () = leaves_its_waker() => {}
                () = leaves_its_waker() => {}
            }
        })
    };
    let outcome = block_on(async move {
        let (mut dropped, mut forgotten) = (select(), select());
        assert!(poll_once(&mut dropped).await.is_pending() && poll_once(&mut forgotten).await.is_pending());
        drop(dropped);
        FORGOTTEN.lock().unwrap().push(forgotten);
        WAKERS.lock().unwrap().iter().for_each(Waker::wake_by_ref);
        checkpoint().await;
    });
    assert_eq!(outcome, Outcome::Value(()));
    // The task has ended, and so has one of the two.
    std::thread::spawn(|| WAKERS.lock().unwrap().drain(..).for_each(Waker::wake)).join().unwrap();
}

#[test]
fn a_branch_that_is_ready_after_the_stop_does_not_win() {
    /// Notices the stop by being polled again, and then returns a value.
    struct Stubborn(Cell<u32>);
    impl Future for Stubborn {
        type Output = &'static str;
        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'static str> {
            self.0.set(self.0.get() + 1);
            cx.waker().wake_by_ref();
            if self.0.get() < 2 { Poll::Pending } else { Poll::Ready("late") }
        }
    }
    let outcome = block_on(async {
        select! {
            late = Stubborn(Cell::new(0)) => late,
            () = ready(()) => "first",
        }
    });
    assert_eq!(outcome, Outcome::Value("first"));
}
