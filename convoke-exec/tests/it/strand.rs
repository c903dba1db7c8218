//! Promises of a strand beyond the contract of every executor.
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::order::Order;
use convoke_core::raw::{Call, Runnable};
use convoke_core::testing::ByHand;
use convoke_core::{Executor, InlineExecutor, Outcome, Panic};
use convoke_exec::strand::RUNS_PER_TURN;
use convoke_exec::{Limited, RunLoop, Strand, ThreadPool};
use convoke_sender::sync_wait;
use convoke_sync::oneshot;
use convoke_task::BlockOn;
use convoke_task::{checkpoint, current, forever, launch, run_on, scope, task};
use convoke_testing::{Latch, runnable};

#[test]
fn a_strand_is_one_word_and_one_entry_in_the_inner_queue() {
    assert_eq!(size_of::<Strand<ByHand>>(), size_of::<usize>());
    let (inner, order) = (ByHand::new(), Order::default());
    let strand = Strand::new(inner.clone());
    (0..10).for_each(|number| strand.post(order.piece(number)));
    assert_eq!(inner.len(), 1);
    assert_eq!(inner.run_all(), 1);
    assert_eq!(order.get(), (0..10).collect::<Vec<_>>());
}

#[test]
fn after_its_bound_it_gives_others_a_turn() {
    let (inner, order) = (ByHand::new(), Order::default());
    let strand = Strand::new(inner.clone());
    (0..=RUNS_PER_TURN as u32).for_each(|number| strand.post(order.piece(number)));
    inner.post(order.piece(9999));
    assert!(inner.run_one());
    assert_eq!(order.get().len(), RUNS_PER_TURN);
    inner.run_all();
    let bound = RUNS_PER_TURN as u32;
    assert_eq!(order.get()[RUNS_PER_TURN..], [9999, bound]);
}

#[test]
fn work_over_the_bound_stays_before_later_work() {
    let (inner, order) = (ByHand::new(), Order::default());
    let strand = Strand::new(inner.clone());
    let bound = RUNS_PER_TURN as u32;
    (0..bound + 2).for_each(|number| strand.post(order.piece(number)));
    assert!(inner.run_one());
    strand.post(order.piece(bound + 2));
    inner.run_all();
    assert_eq!(order.get(), (0..bound + 3).collect::<Vec<_>>());
}

#[test]
fn dispatch_from_inside_returns_the_work_only_if_nothing_is_queued() {
    let (inner, order) = (ByHand::new(), Order::default());
    let strand = Strand::new(inner.clone());
    let dispatch = |number: u32| {
        let (strand, order) = (strand.clone(), order.clone());
        runnable(move |_| {
            order.note(number);
            assert!(strand.is_running_here());
            if let Some(back) = strand.dispatch(order.piece(number + 1)) {
                order.note(number + 2);
                back.run();
            }
        })
    };
    strand.post(dispatch(10));
    strand.post(dispatch(20));
    assert!(!strand.is_running_here());
    assert!(strand.dispatch(order.piece(30)).is_none(), "from outside it must queue");
    inner.run_all();
    assert_eq!(order.get(), [10, 20, 30, 11, 21]);
    strand.post(dispatch(40));
    inner.run_all();
    assert_eq!(order.get()[5..], [40, 42, 41], "with an empty queue the work is returned");
}

#[test]
fn an_inner_executor_that_drops_the_strand_stops_all_work_and_the_strand_works_again() {
    let (inner, order) = (ByHand::new(), Order::default());
    let strand = Strand::new(inner.clone());
    let stopped = Latch::new(3);
    for _ in 0..2 {
        let stopped = stopped.clone();
        strand.post(runnable(move |call| {
            assert_eq!(call, Call::Stop);
            stopped.count_down();
        }));
    }
    let (again, last) = (strand.clone(), stopped.clone());
    strand.post(runnable(move |_| {
        // Posted by a completion while the strand is being stopped.
        again.post(runnable(move |call| {
            assert_eq!(call, Call::Stop);
            last.count_down();
        }));
    }));
    inner.drop_all();
    assert!(stopped.is_open());
    assert_eq!(inner.len(), 0);
    strand.post(order.piece(1));
    inner.run_all();
    assert_eq!(order.get(), [1]);
}

#[test]
fn a_panic_goes_to_the_handler_and_the_rest_of_the_turn_runs() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let (inner, order) = (ByHand::new(), Order::default());
    let strand = Strand::with_panic_handler(inner.clone(), |panic| {
        assert_eq!(panic.message(), "on the strand");
        PANICS.fetch_add(1, Ordering::Relaxed);
    });
    strand.post(runnable(|_| panic!("on the strand")));
    strand.post(order.piece(1));
    strand.post(runnable(|_| panic!("on the strand")));
    strand.post(order.piece(2));
    assert_eq!(inner.run_all(), 1);
    assert_eq!(order.get(), [1, 2]);
    assert_eq!(PANICS.load(Ordering::Relaxed), 2);
}

#[test]
fn a_strand_lives_until_its_work_is_done_and_no_longer() {
    let (inner, order) = (ByHand::new(), Order::default());
    let strand = Strand::new(inner.clone());
    strand.post(order.piece(1));
    drop(strand);
    inner.run_all();
    assert_eq!(order.get(), [1]);
}

#[test]
fn on_an_inline_executor_a_long_chain_stays_in_order() {
    let order = Order::default();
    let strand = Strand::new(InlineExecutor);
    let (inside, from) = (strand.clone(), order.clone());
    strand.post(runnable(move |_| {
        from.note(0);
        (1..1000).for_each(|number| inside.post(from.piece(number)));
        from.note(9999);
    }));
    let expected: Vec<_> = [0, 9999].into_iter().chain(1..1000).collect();
    assert_eq!(order.get(), expected);
}

/// A counter without a lock: only the strand keeps the increments from racing.
#[test]
fn work_of_many_posters_on_many_threads_is_never_concurrent() {
    const POSTERS: usize = 4;
    const EACH: usize = if cfg!(miri) { 15 } else { 5000 };
    let pool = ThreadPool::new(4).unwrap();
    let strand = Strand::new(pool.executor());
    let (count, done) = (Arc::new(AtomicUsize::new(0)), Latch::new(POSTERS * EACH));
    thread::scope(|scope| {
        for _ in 0..POSTERS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let (count, done) = (count.clone(), done.clone());
                    strand.post(runnable(move |_| {
                        let before = count.load(Ordering::Relaxed);
                        std::hint::black_box(before);
                        count.store(before + 1, Ordering::Relaxed);
                        done.count_down();
                    }));
                }
            });
        }
    });
    done.wait();
    assert_eq!(count.load(Ordering::Relaxed), POSTERS * EACH);
}

/// Panics when it is cloned.
#[derive(PartialEq)]
struct Unclonable(ByHand);

impl Clone for Unclonable {
    fn clone(&self) -> Self {
        panic!("cloned")
    }
}

impl Executor for Unclonable {
    fn post(&self, runnable: Runnable) {
        self.0.post(runnable);
    }
}

#[test]
fn the_inner_executor_is_not_cloned_so_that_no_panic_loses_the_turn() {
    let (inner, order) = (ByHand::new(), Order::default());
    let strand = Strand::new(Unclonable(inner.clone()));
    strand.post(order.piece(1));
    inner.run_all();
    assert_eq!(order.get(), [1]);
}

/// The strand of a run loop has its owner thread, so its tasks need not be `Send`.
#[test]
fn over_a_run_loop_children_need_not_be_send() {
    let outcome = sync_wait(task(async {
        let strand = Strand::new(Limited::new(&Strand::new(current::executor()), 2));
        run_on(&strand, async {
            scope(async |s| {
                let here = Rc::new(Cell::new(0));
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

/// Remote wakes and remote stop requests go through the strand like all other work.
#[test]
fn tasks_of_a_strand_over_a_loop_are_woken_and_stopped_from_other_threads() {
    let run_loop = RunLoop::new();
    let strand = Strand::new(run_loop.executor());
    let on_strand = async {
        scope(async |s| {
            let (sender, mut receiver) = oneshot::channel();
            let waits = s.spawn_future(async move { receiver.recv().await });
            let stops = s.spawn_future(forever());
            checkpoint().await;
            thread::spawn(move || sender.send(7)).join().unwrap().unwrap();
            thread::spawn(move || drop(stops)).join().unwrap();
            waits.await
        })
        .await
    };
    let outcome = run_loop.block_on(async { run_on(&strand, on_strand).await });
    assert_eq!(outcome, Outcome::Value(Some(7)));
}

#[test]
fn work_of_a_strand_whose_loop_is_dropped_is_stopped_on_its_owner_thread() {
    let run_loop = RunLoop::new();
    let strand = Strand::new(run_loop.executor());
    let waits = launch(&strand).start(forever());
    run_loop.run_ready();
    let queued = launch(&strand).start(async {});
    drop(run_loop);
    // The owner thread is closed, and belongs to no thread any more.
    let stopped = thread::spawn(move || (queued.wait(), drop(waits)));
    assert_eq!(stopped.join().unwrap().0, Outcome::Stopped);
}

#[test]
fn waiting_for_a_chain_on_the_own_thread_panics_through_a_strand_too() {
    let run_loop = RunLoop::new();
    let launched = launch(&Strand::new(run_loop.executor())).start(async {});
    let panic = Panic::catch(|| launched.wait()).unwrap_err();
    assert!(panic.to_string().contains("runs on this thread alone"), "{panic}");
    run_loop.run_ready();
}
