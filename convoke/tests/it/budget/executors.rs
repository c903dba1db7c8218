//! The budget on every kind of executor: beside a task that is always ready, others of the same executor run, and so does work
//! of the executor below a view.

use super::*;
use convoke::Executor;
use convoke::executor::{Limited, Strand};

/// An await that is ready each time, until `over`.
async fn busy_until(over: Arc<AtomicBool>, began: Arc<AtomicBool>) {
    let lock = Mutex::new(());
    while !over.load(Ordering::Relaxed) {
        began.store(true, Ordering::Relaxed);
        drop(lock.lock().await);
    }
}

/// Runs a busy task on `busy`, and ends it by a task on `other`, which is posted when the first one runs.
fn runs_beside<B: Executor, O: Executor>(busy: &B, other: &O) {
    let (over, began) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let running = launch(busy).start(busy_until(over.clone(), began.clone()));
    while !began.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    let ends = launch(other).start(async move { over.store(true, Ordering::Relaxed) });
    assert_eq!(ends.wait(), Outcome::Value(()));
    assert_eq!(running.wait(), Outcome::Value(()));
}

#[test]
fn a_strand_runs_others_beside_a_busy_task() {
    let pool = ThreadPool::new(1).unwrap();
    let strand = Strand::new(pool.executor());
    runs_beside(&strand, &strand);
    runs_beside(&strand, &Strand::new(pool.executor()));
    runs_beside(&strand, &pool.executor());
    runs_beside(&pool.executor(), &strand);
}

#[test]
fn a_limited_view_runs_others_beside_busy_tasks() {
    let pool = ThreadPool::new(1).unwrap();
    let limited = Limited::new(&pool.executor(), 1);
    runs_beside(&limited, &limited);
    runs_beside(&limited, &Limited::new(&pool.executor(), 1));
    runs_beside(&limited, &pool.executor());
    runs_beside(&pool.executor(), &limited);
    let strand = Strand::new(limited.clone());
    runs_beside(&strand, &limited);
    runs_beside(&limited, &strand);
}

#[test]
fn work_of_lower_priority_runs_beside_a_busy_task_of_a_pool() {
    use convoke::executor::Priority;

    let pool = ThreadPool::new(1).unwrap();
    runs_beside(&pool.executor().with_priority(Priority::High), &pool.executor());
    runs_beside(&pool.executor(), &pool.executor().with_priority(Priority::Low));
    runs_beside(
        &pool.executor().with_priority(Priority::High),
        &pool.executor().with_priority(Priority::Low),
    );
}

/// A child on a view of the context beside its busy siblings, and the context's own timers.
#[test]
fn views_of_a_context_do_not_hide_its_timers() {
    let outcome = io_context().unwrap().block_on(async {
        let here = convoke::env::current::executor();
        let (strand, limited) = (Strand::new(here.clone()), Limited::new(&here, 2));
        let over = Arc::new(AtomicBool::new(false));
        scope(async |s| {
            let busy = || busy_until(over.clone(), Arc::new(AtomicBool::new(false)));
            s.child().on(&strand).spawn(busy());
            s.child().on(&limited).spawn(busy());
            s.child().on(&limited).spawn(busy());
            let ends = over.clone();
            s.child().on(&strand).spawn(async move {
                sleep(Duration::from_millis(1)).await;
                ends.store(true, Ordering::Relaxed);
            });
        })
        .await;
    });
    outcome.unwrap();
}

/// A loop inside of a task: its busy work shares the thread with the siblings of that task.
#[test]
fn a_loop_as_a_future_lets_siblings_of_its_task_run() {
    let inner = RunLoop::new();
    let (over, began) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let running = launch(&inner.executor()).start(busy_until(over.clone(), began));
    let outcome = convoke::executor::BlockOn::block_on(&RunLoop::new(), async {
        scope(async |s| {
            let (ends, finishes) = (over.clone(), inner.executor());
            s.spawn(async move {
                sleep(Duration::from_millis(1)).await;
                ends.store(true, Ordering::Relaxed);
                finishes.finish();
            });
            inner.as_future().await;
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(running.wait(), Outcome::Value(()));
}
