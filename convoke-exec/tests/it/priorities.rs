//! The priorities of a pool: their order, that nothing starves (by counting runs), and that they are
//! inherited.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use convoke::prelude::*;
use convoke::run_on;
use convoke::sender::prelude::*;
use convoke_core::raw::{Call, Runnable};
use convoke_exec::pool::{HIGH_IN_A_ROW, OTHERS_EACH};
use convoke_exec::{PoolExecutor, Priority, ThreadPool};
use convoke_task::reschedule;
use convoke_testing::{Latch, runnable};

const ALL: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

/// Creates a pool of one thread, which is busy until the latch is opened.
fn gated_pool() -> (ThreadPool, Latch) {
    let pool = ThreadPool::new(1).unwrap();
    let (busy, gate) = (Latch::new(1), Latch::new(1));
    let (inside, opened) = (busy.clone(), gate.clone());
    pool.executor().post(runnable(move |_| {
        inside.count_down();
        opened.wait();
    }));
    busy.wait();
    (pool, gate)
}

/// The priorities of the pieces that were run, in order.
#[derive(Clone, Default)]
struct Order(Arc<Mutex<Vec<Priority>>>);

impl Order {
    fn piece(&self, executor: PoolExecutor, done: &Latch) -> Runnable {
        let (order, done) = (self.clone(), done.clone());
        runnable(move |call| {
            assert_eq!(call, Call::Run);
            order.0.lock().unwrap().push(executor.priority());
            done.count_down();
        })
    }

    fn get(&self) -> Vec<Priority> {
        self.0.lock().unwrap().clone()
    }
}

/// Posts `low`, `normal` and `high` pieces from outside, low ones first, and returns the order in which they
/// ran.
fn run_in_order(low: usize, normal: usize, high: usize) -> Vec<Priority> {
    let (pool, gate) = gated_pool();
    let (order, done) = (Order::default(), Latch::new(low + normal + high));
    for (priority, count) in ALL.into_iter().zip([low, normal, high]) {
        let executor = pool.executor().with_priority(priority);
        (0..count).for_each(|_| executor.post(order.piece(executor, &done)));
    }
    gate.count_down();
    done.wait();
    order.get()
}

#[test]
fn high_work_runs_first_and_low_work_last() {
    let order = run_in_order(3, 3, 3);
    let expected = [Priority::High, Priority::Normal, Priority::Low].map(|priority| [priority; 3]).concat();
    assert_eq!(order, expected);
}

#[test]
fn after_a_row_of_high_work_other_work_gets_a_turn() {
    let order = run_in_order(0, 2, 3 * HIGH_IN_A_ROW as usize);
    let row = HIGH_IN_A_ROW as usize;
    let normal: Vec<_> = (0..order.len()).filter(|place| order[*place] == Priority::Normal).collect();
    assert_eq!(normal, [row, 2 * row + 1]);
}

#[test]
fn after_many_runs_of_normal_work_low_work_gets_a_turn() {
    let order = run_in_order(2, 3 * OTHERS_EACH as usize, 0);
    let low: Vec<_> = (0..order.len()).filter(|place| order[*place] == Priority::Low).collect();
    // One less for the piece that kept the thread busy, and one more, in between, for work from outside.
    let first = OTHERS_EACH as usize - 1;
    assert_eq!(low, [first, first + OTHERS_EACH as usize + 2]);
}

/// Posts work that posts itself again until `enough` is set, and counts its runs.
fn breed(executor: PoolExecutor, runs: &Arc<AtomicU32>, enough: &Arc<AtomicBool>, gone: &Latch) {
    let (runs, enough, gone) = (runs.clone(), enough.clone(), gone.clone());
    executor.post(runnable(move |_| {
        runs.fetch_add(1, Ordering::Relaxed);
        if enough.load(Ordering::Relaxed) {
            gone.count_down();
        } else {
            breed(executor, &runs, &enough, &gone);
        }
    }));
}

/// Posts one piece of priority `of`, while work of each priority in `against` posts itself again. Returns how
/// many of those run before it.
fn runs_before(of: Priority, against: &[Priority]) -> u32 {
    let (pool, gate) = gated_pool();
    let (runs, enough, gone) = (Arc::default(), Arc::default(), Latch::new(against.len() + 1));
    let before = Arc::new(AtomicU32::new(0));
    for priority in against {
        breed(pool.executor().with_priority(*priority), &runs, &enough, &gone);
    }
    let (told, last, found) = (enough.clone(), gone.clone(), before.clone());
    let counted = runs.clone();
    pool.executor().with_priority(of).post(runnable(move |_| {
        found.store(counted.load(Ordering::Relaxed), Ordering::Relaxed);
        told.store(true, Ordering::Relaxed);
        last.count_down();
    }));
    gate.count_down();
    gone.wait();
    before.load(Ordering::Relaxed)
}

#[test]
fn high_work_that_posts_high_work_starves_nothing() {
    assert_eq!(runs_before(Priority::Normal, &[Priority::High]), HIGH_IN_A_ROW);
    assert_eq!(runs_before(Priority::Low, &[Priority::High]), HIGH_IN_A_ROW);
}

#[test]
fn normal_work_that_posts_normal_work_does_not_starve_low_work() {
    let before = runs_before(Priority::Low, &[Priority::Normal]);
    assert!(before <= OTHERS_EACH, "{before} normal pieces ran before a low one");
}

#[test]
fn both_together_do_not_starve_low_work() {
    let before = runs_before(Priority::Low, &[Priority::High, Priority::Normal]);
    let bound = (HIGH_IN_A_ROW + 1) * (OTHERS_EACH + 1);
    assert!(before <= bound, "{before} other pieces ran before a low one, not {bound}");
    assert!(before > OTHERS_EACH, "it ran before its turn");
}

#[test]
fn high_work_overtakes_all_work_that_posts_itself() {
    assert!(runs_before(Priority::High, &[Priority::Normal, Priority::Low]) <= 1);
}

#[test]
fn children_inherit_the_priority_with_the_executor() {
    let pool = ThreadPool::new(2).unwrap();
    let high = pool.executor().with_priority(Priority::High);
    let child =
        async || scope(async |s| s.spawn_future(async { convoke::env::current::executor() }).await).await;
    let outcome = sync_wait(task(async move { run_on(&high, child()).await }));
    assert!(outcome.unwrap().is(&high));
}

#[test]
fn a_task_can_be_moved_to_another_priority() {
    let pool = ThreadPool::new(1).unwrap();
    let (normal, low) = (pool.executor(), pool.executor().with_priority(Priority::Low));
    let outcome = sync_wait(task(async move {
        reschedule(&normal).await.unwrap();
        let before = reschedule(&low).await.unwrap();
        assert!(before.is(&normal));
        convoke::env::current::executor()
    }));
    assert!(outcome.unwrap().is(&low));
}

#[test]
fn executors_of_different_priority_are_not_equal() {
    let pool = ThreadPool::new(1).unwrap();
    let high = pool.executor().with_priority(Priority::High);
    assert_ne!(high, pool.executor());
    assert_eq!(high.with_priority(Priority::Normal), pool.executor());
    assert_eq!(high, pool.executor().with_priority(Priority::High));
    assert_ne!(high, ThreadPool::new(1).unwrap().executor().with_priority(Priority::High));
}

/// The caller already runs on the pool, and work that is returned does not queue: there is nothing to order.
#[test]
fn dispatch_on_the_pool_returns_the_work_whatever_the_priority() {
    let pool = ThreadPool::new(1).unwrap();
    let done = Latch::new(1);
    let (executor, end) = (pool.executor(), done.clone());
    executor.post(runnable(move |_| {
        for priority in ALL {
            let back = executor.with_priority(priority).dispatch(runnable(|_| ()));
            back.expect("this thread is a worker of the pool").run();
        }
        end.count_down();
    }));
    done.wait();
    for priority in ALL {
        let ran = Latch::new(1);
        let told = ran.clone();
        let back = pool.executor().with_priority(priority).dispatch(runnable(move |_| told.count_down()));
        assert!(back.is_none(), "the work was returned to a thread outside the pool");
        ran.wait();
    }
}

#[test]
fn the_queue_limit_is_for_each_priority_and_not_for_the_pools_own_work() {
    const LIMIT: usize = 2;
    let pool = ThreadPool::builder().threads(1).queue_limit(LIMIT).build().unwrap();
    let (busy, gate, done) = (Latch::new(1), Latch::new(1), Latch::new(ALL.len() * (LIMIT + 10)));
    let executor = pool.executor();
    let (inside, opened, end) = (busy.clone(), gate.clone(), done.clone());
    executor.post(runnable(move |_| {
        inside.count_down();
        opened.wait();
        for priority in ALL {
            for _ in 0..10 {
                let end = end.clone();
                executor.with_priority(priority).post(runnable(move |call| {
                    assert_eq!(call, Call::Run);
                    end.count_down();
                }));
            }
        }
    }));
    busy.wait();
    let order = Order::default();
    for priority in ALL {
        let executor = pool.executor().with_priority(priority);
        (0..LIMIT).for_each(|_| executor.post(order.piece(executor, &done)));
        let refused = Latch::new(1);
        let told = refused.clone();
        executor.post(runnable(move |call| {
            assert_eq!(call, Call::Stop);
            told.count_down();
        }));
        assert!(refused.is_open());
    }
    assert_eq!(pool.refused(), ALL.len());
    gate.count_down();
    done.wait();
}

#[test]
fn dropping_the_pool_stops_queued_work_of_every_priority() {
    let (pool, gate) = gated_pool();
    let stopped = Latch::new(ALL.len() * 10);
    for priority in ALL {
        for _ in 0..10 {
            let stopped = stopped.clone();
            pool.executor().with_priority(priority).post(runnable(move |call| {
                assert_eq!(call, Call::Stop);
                stopped.count_down();
            }));
        }
    }
    let ending = std::thread::spawn(move || drop(pool));
    stopped.wait();
    gate.count_down();
    ending.join().unwrap();
}
