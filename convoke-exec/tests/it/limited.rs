//! Promises of a `Limited` view beyond the contract of every executor.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::order::Order;
use convoke::executor::Limited;
use convoke::prelude::*;
use convoke::run_on;
use convoke::sender::prelude::*;
use convoke_core::InlineExecutor;
use convoke_core::raw::Call;
use convoke_core::testing::ByHand;
use convoke_exec::limited::LARGEST_LIMIT;
use convoke_exec::strand::RUNS_PER_TURN;
use convoke_testing::{Latch, runnable};

/// Counts how many pieces run at the same time, and the maximum of that.
#[derive(Default)]
struct Crowd {
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl Crowd {
    fn enter(&self) {
        let now = self.inside.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_view_is_one_word_and_at_most_limit_entries_in_the_inner_queue() {
    assert_eq!(size_of::<Limited<ByHand>>(), size_of::<usize>());
    let (inner, order) = (ByHand::new(), Order::default());
    let view = Limited::new(&inner, 3);
    view.post(order.piece(0));
    assert_eq!(inner.len(), 1, "one piece of work needs one seat");
    (1..10).for_each(|number| view.post(order.piece(number)));
    assert_eq!(inner.len(), 3);
    assert!(inner.run_one());
    assert_eq!(order.get(), (0..10).collect::<Vec<_>>(), "one seat runs all queued work, in order");
    assert_eq!(inner.run_all(), 2, "the other seats find nothing");
    assert_eq!(order.get().len(), 10);
}

#[test]
fn never_more_than_the_limit_run_at_a_time_and_that_many_do() {
    const LIMIT: usize = 2;
    const PIECES: usize = 400;
    let pool = ThreadPool::new(4).unwrap();
    let view = Limited::new(&pool.executor(), LIMIT);
    let (crowd, done) = (Arc::new(Crowd::default()), Latch::new(PIECES));
    // As many pieces as the limit wait for each other: with fewer seats this would not end.
    let all_inside = Latch::new(LIMIT);
    for _ in 0..LIMIT {
        let (crowd, all_inside, done) = (crowd.clone(), all_inside.clone(), done.clone());
        view.post(runnable(move |_| {
            crowd.enter();
            all_inside.count_down();
            all_inside.wait();
            crowd.leave();
            done.count_down();
        }));
    }
    for _ in LIMIT..PIECES {
        let (crowd, done) = (crowd.clone(), done.clone());
        view.post(runnable(move |_| {
            crowd.enter();
            std::thread::yield_now();
            crowd.leave();
            done.count_down();
        }));
    }
    done.wait();
    assert_eq!(crowd.most.load(Ordering::Relaxed), LIMIT);
}

#[test]
fn views_of_one_executor_take_turns() {
    let (inner, order) = (ByHand::new(), Order::default());
    let (left, right) = (Limited::new(&inner, 1), Limited::new(&inner, 1));
    let bound = RUNS_PER_TURN as u32;
    (0..=bound).for_each(|number| left.post(order.piece(number)));
    right.post(order.piece(9999));
    inner.run_all();
    assert_eq!(order.get()[RUNS_PER_TURN..], [9999, bound]);
}

#[test]
fn dispatch_from_inside_returns_the_work_only_if_nothing_is_queued() {
    let (inner, order) = (ByHand::new(), Order::default());
    let view = Limited::new(&inner, 1);
    let dispatch = |number: u32| {
        let (view, order) = (view.clone(), order.clone());
        runnable(move |_| {
            order.note(number);
            assert!(view.is_running_here());
            if let Some(back) = view.dispatch(order.piece(number + 1)) {
                order.note(number + 2);
                back.run();
            }
        })
    };
    view.post(dispatch(10));
    view.post(dispatch(20));
    assert!(!view.is_running_here());
    assert!(view.dispatch(order.piece(30)).is_none(), "from outside it must queue");
    inner.run_all();
    assert_eq!(order.get(), [10, 20, 30, 11, 21]);
    view.post(dispatch(40));
    inner.run_all();
    assert_eq!(order.get()[5..], [40, 42, 41], "with an empty queue the work is returned");
}

#[test]
fn an_inner_executor_that_drops_the_view_stops_all_work_and_the_view_works_again() {
    let (inner, order) = (ByHand::new(), Order::default());
    let view = Limited::new(&inner, 2);
    let stopped = Latch::new(4);
    for _ in 0..3 {
        let stopped = stopped.clone();
        view.post(runnable(move |call| {
            assert_eq!(call, Call::Stop);
            stopped.count_down();
        }));
    }
    let (again, last) = (view.clone(), stopped.clone());
    view.post(runnable(move |_| {
        // Posted by a completion while the view is being stopped.
        again.post(runnable(move |call| {
            assert_eq!(call, Call::Stop);
            last.count_down();
        }));
    }));
    inner.drop_all();
    assert!(stopped.is_open());
    (0..4).for_each(|number| view.post(order.piece(number)));
    assert_eq!(inner.len(), 2, "all seats are free again");
    inner.run_all();
    assert_eq!(order.get(), [0, 1, 2, 3]);
}

#[test]
fn a_panic_goes_to_the_handler_and_the_seat_continues() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let (inner, order) = (ByHand::new(), Order::default());
    let view = Limited::with_panic_handler(&inner, 1, |panic| {
        assert_eq!(panic.message(), "in the view");
        PANICS.fetch_add(1, Ordering::Relaxed);
    });
    view.post(runnable(|_| panic!("in the view")));
    view.post(order.piece(1));
    assert_eq!(inner.run_all(), 1);
    assert_eq!(order.get(), [1]);
    assert_eq!(PANICS.load(Ordering::Relaxed), 1);
}

#[test]
fn a_view_lives_until_its_work_is_done_and_no_longer() {
    let (inner, order) = (ByHand::new(), Order::default());
    let view = Limited::new(&inner, 2);
    view.post(order.piece(1));
    drop(view);
    inner.run_all();
    assert_eq!(order.get(), [1]);
}

#[test]
fn on_an_inline_executor_the_limit_holds() {
    let (crowd, view) = (Arc::new(Crowd::default()), Limited::new(&InlineExecutor, 2));
    fn nested(view: &Limited<InlineExecutor>, crowd: &Arc<Crowd>, left: u32) {
        let (inside, seen) = (view.clone(), crowd.clone());
        view.post(runnable(move |_| {
            seen.enter();
            if left > 0 {
                nested(&inside, &seen, left - 1);
            }
            seen.leave();
        }));
    }
    nested(&view, &crowd, 1000);
    assert_eq!(crowd.most.load(Ordering::Relaxed), 2);
}

#[test]
fn parallelism_is_the_smaller_of_limit_and_inner_parallelism() {
    let pool = ThreadPool::new(3).unwrap();
    assert_eq!(Limited::new(&pool.executor(), 2).parallelism(), 2);
    // Each seat is created, which takes minutes under Miri.
    let large = if cfg!(miri) { 20 } else { LARGEST_LIMIT };
    assert_eq!(Limited::new(&pool.executor(), large).parallelism(), 3);
}

#[test]
#[should_panic = "the limit of a view must be between 1 and 65535, not 0"]
fn a_limit_of_zero_is_refused() {
    let _ = Limited::new(&InlineExecutor, 0);
}

/// Tasks that wait do not count: with a limit of one, both are in progress.
#[test]
fn a_task_that_waits_leaves_its_seat_to_others() {
    let outcome = sync_wait(task(async {
        let view = Limited::new(&convoke::env::current::executor(), 1);
        let barrier = Arc::new(convoke::sync::Barrier::new(2));
        scope(async |s| {
            for _ in 0..2 {
                let barrier = barrier.clone();
                s.child().on(&view).spawn(async move {
                    barrier.wait().await;
                });
            }
        })
        .await;
    }));
    assert_eq!(outcome, Outcome::Value(()));
}

/// The view of a run loop has its owner thread, so its tasks need not be `Send`.
#[test]
fn over_a_run_loop_children_need_not_be_send() {
    let outcome = sync_wait(task(async {
        let view = Limited::new(&convoke::env::current::executor(), 2);
        run_on(&view, async {
            scope(async |s| {
                let here = std::rc::Rc::new(std::cell::Cell::new(0));
                let counted = here.clone();
                s.child().local().spawn(async move {
                    checkpoint().await;
                    counted.set(counted.get() + 1);
                });
                "local"
            })
            .await
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value("local"));
}
