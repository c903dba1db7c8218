//! Scopes with policies: what ends them, and what they return.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::retry::Backoff;
use convoke::scope::policy::{
    ChildFailure, FailureKind, FirstError, FirstSuccess, Quorum, Supervise, WaitForAll,
};
use convoke::scope::scope_with;
use convoke::sender::prelude::*;
use convoke::task::forever;
use convoke::testing::{Clockwork, Connected, Probe, explore_stops_with};

const SECOND: Duration = Duration::from_secs(1);

/// Runs a program, and returns its output.
fn run<T: Send + 'static>(program: impl Future<Output = T> + Send + 'static) -> T {
    sync_wait(task(program)).unwrap()
}

/// Returns even numbers as values and odd ones as errors, after a number of checkpoints.
async fn even(n: u32) -> Result<u32, String> {
    for _ in 0..n {
        checkpoint().await;
    }
    if n.is_multiple_of(2) { Ok(n) } else { Err(format!("{n} is odd")) }
}

#[test]
fn the_first_error_ends_all_and_without_one_all_values_come() {
    let (failed, well) = run(async {
        let failed = scope_with(FirstError, async |s| {
            s.spawn(even(3));
            s.spawn(async { forever().await });
            forever().await
        })
        .await;
        let well = scope_with(FirstError, async |s| [2, 0].into_iter().for_each(|n| s.spawn(even(n)))).await;
        (failed, well)
    });
    assert_eq!(failed, Err("3 is odd".to_owned()));
    assert_eq!(well, Ok(vec![0, 2]));
}

#[test]
fn all_failures_are_told_with_names_and_the_others_come_to_their_end() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let failures = run(async move {
        scope_with(WaitForAll, async |s| {
            s.named("one").spawn(even(1));
            s.named("panics").spawn(async { panic!("fell over") });
            s.spawn(async move {
                let n = even(6).await;
                count.fetch_add(1, Ordering::Relaxed);
                n
            });
            checkpoint().await;
            Err("not content".to_owned())
        })
        .await
        .unwrap_err()
    });
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    let mut lines: Vec<_> = failures.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines.remove(0), "3 children have failed:");
    lines.sort();
    assert_eq!(lines[0], "  `one`: 1 is odd");
    assert!(lines[1].starts_with("  `panics`: ") && lines[1].contains("fell over"), "{lines:?}");
    assert_eq!(lines[2], "  `the body`: not content");
    assert_eq!(failures.iter().filter(|one| matches!(one.kind(), FailureKind::Panicked(_))).count(), 1);
}

#[test]
fn the_first_success_or_a_quorum_stops_the_others() {
    let (first, quorum, too_few, none) = run(async {
        let first = scope_with(FirstSuccess, async |s| {
            s.spawn(async { forever().await });
            [5, 4, 3, 2].into_iter().for_each(|n| s.spawn(even(n)));
        });
        let first = first.await;
        let quorum =
            scope_with(Quorum(2), async |s| [0, 9, 2, 40].into_iter().for_each(|n| s.spawn(even(n))));
        let quorum = quorum.await;
        let too_few = scope_with(Quorum(2), async |s| [0, 1].into_iter().for_each(|n| s.spawn(even(n))));
        let too_few = too_few.await;
        let none = scope_with::<_, u32, String, _, _>(FirstSuccess, async |_| {}).await;
        (first, quorum, too_few, none)
    });
    assert_eq!(first.unwrap(), 2);
    assert_eq!(quorum.unwrap(), [0, 2]);
    assert!(too_few.unwrap_err().to_string().ends_with(": 1 is odd"));
    assert!(none.unwrap_err().is_empty());
}

#[test]
fn a_failure_stays_with_its_child_and_that_is_started_again_as_the_schedule_says() {
    let clockwork = Clockwork::new();
    let begin = clockwork.now();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let (told, clock) = (reports.clone(), clockwork.clone());
    let program = async move {
        scope_with(Supervise, async |s| {
            let report = move |failure: &convoke::scope::policy::ChildFailure<String>| {
                told.lock().unwrap().push((
                    (clock.now() - begin).as_secs(),
                    failure.attempt(),
                    failure.to_string(),
                ));
            };
            let mut runs = 0;
            let schedule = Backoff::exponential(SECOND).up_to(2);
            s.named("worker").restart(schedule).report(report).spawn(move || {
                runs += 1;
                assert_ne!(runs, 2, "a bad day");
                even(1)
            });
            s.spawn(even(4));
        })
        .await
    };
    let running = Connected::with_env(task(program), clockwork.clone().into()).start();
    clockwork.advance(100 * SECOND);
    let report = running.outcome().unwrap();
    assert_eq!(report.values, [4]);
    assert_eq!(report.failures.to_string(), "`worker`, attempt 3: 1 is odd");
    let reports = reports.lock().unwrap();
    assert_eq!(reports.iter().map(|report| (report.0, report.1)).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    assert!(reports[1].2.contains("a bad day"), "{reports:?}");
}

#[test]
fn daemons_are_stopped_when_the_others_are_done_and_one_that_fails_is_heard() {
    let stopped = Arc::new(AtomicUsize::new(0));
    let count = stopped.clone();
    let (well, failed) = run(async move {
        let well = scope_with(FirstError, async |s| {
            let (count, again) = (count.clone(), s.clone());
            s.child().daemon().spawn(async move {
                let clean_up = async |exit: Exit| {
                    checkpoint().await;
                    count.fetch_add(usize::from(exit.is_stopped()), Ordering::Relaxed);
                    // Started after the scope was over: asked to stop at once.
                    again.child().daemon().spawn(async { forever().await });
                };
                ensure(clean_up, async { forever().await }).await
            });
            s.spawn(even(4));
        })
        .await;
        let failed = scope_with::<_, u32, _, _, _>(FirstError, async |s| {
            s.child().daemon().spawn(async { Err("the daemon is ill".to_owned()) });
            s.spawn(async { forever().await });
        })
        .await;
        (well, failed)
    });
    assert_eq!(well, Ok(vec![4]));
    assert_eq!(failed, Err("the daemon is ill".to_owned()));
    assert_eq!(stopped.load(Ordering::Relaxed), 1);
}

#[test]
fn a_panic_of_the_body_goes_on_when_the_children_have_ended() {
    let program = async {
        scope_with(WaitForAll, async |s| {
            s.spawn(even(2));
            panic!("the body");
        })
        .await
        .is_ok()
    };
    let panic = catch_unwind(AssertUnwindSafe(|| sync_wait(task(program)))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the body"));
}

async fn child(probe: Probe, n: u32) -> Result<u32, String> {
    probe.acquired("child");
    let clean_up = async |_| {
        checkpoint().await;
        probe.cleaned_up("child");
    };
    ensure(clean_up, even(n)).await
}

#[test]
fn a_stop_at_any_point_ends_children_and_daemons() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            let first = scope_with(Quorum(1), async |s| {
                let held = probe.must_drop("daemon");
                s.child().daemon().spawn(async move {
                    let _held = held;
                    forever().await
                });
                let again = probe.clone();
                s.child().restart(Backoff::constant(SECOND).up_to(1)).spawn(move || child(again.clone(), 1));
                s.spawn(child(probe.clone(), 2));
                checkpoint().await;
            })
            .await;
            first.map_err(|failures| failures.len())
        }
    });
    assert!(exploration.points() > 8, "{exploration}");
}

#[test]
fn children_on_another_executor_and_local_ones_are_under_the_policy_too() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let failures = run_local(async move {
        let here = std::thread::current().id();
        let name = std::rc::Rc::new("not `Send`");
        scope_with(WaitForAll, async move |s| {
            s.named("far").on(&executor).spawn(async move {
                assert_ne!(std::thread::current().id(), here);
                Err::<(), _>("far".to_owned())
            });
            s.named("near").local().spawn(async move {
                assert_eq!(std::thread::current().id(), here);
                checkpoint().await;
                Err(name.to_string())
            });
        })
        .await
        .unwrap_err()
    });
    let mut told: Vec<_> = failures.iter().map(|failure| (failure.name(), failure.to_string())).collect();
    told.sort();
    assert_eq!(told.len(), 2);
    assert!(told[0].0 == Some("far") && told[0].1.contains("far"), "{told:?}");
    assert!(told[1].0 == Some("near") && told[1].1.contains("not `Send`"), "{told:?}");
}

#[test]
fn supervised_children_fail_by_themselves_and_leave_nothing_behind() {
    const MANY: usize = if cfg!(miri) { 10 } else { 100 };
    let told = Arc::new(Mutex::new(Vec::new()));
    let (tell, probe) = (told.clone(), Arc::new(()));
    let kept = probe.clone();
    let ended = run(async move {
        scope(async |s| {
            let clients = s.supervise(move |failure: ChildFailure<Arc<()>>| {
                tell.lock().unwrap().push((failure.name().map(str::to_owned), failure.attempt()));
                drop(failure);
            });
            for n in 0..MANY {
                clients.named(format!("client {n}")).spawn(fails_with(kept.clone()));
            }
            clients.spawn(async { panic!("not even a name") });
            while told_so_far(&told) < MANY + 1 {
                checkpoint().await;
            }
            assert_eq!(Arc::strong_count(&kept), 2, "the errors are gone while the scope goes on");
            s.spawn(async { Err("only this ends the scope") });
            forever().await
        })
        .await
    });
    assert_eq!(ended, Err::<(), _>("only this ends the scope"));
    assert_eq!(Arc::strong_count(&probe), 1);
}

/// Fails with an error that owns something.
async fn fails_with(kept: Arc<()>) -> Result<(), Arc<()>> {
    checkpoint().await;
    Err(kept)
}

fn told_so_far<T>(told: &Mutex<Vec<T>>) -> usize {
    told.lock().unwrap().len()
}

#[test]
fn supervised_children_elsewhere_and_those_that_stay_tell_how_they_fail() {
    let pool = ThreadPool::new(1).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let (tell, executor) = (told.clone(), pool.executor());
    run_local(async move {
        scope(async |s| {
            let clients = s.supervise(move |failure: ChildFailure<&str>| {
                tell.lock().unwrap().push((failure.to_string(), thread::current().id()));
            });
            let stays = Rc::new("here");
            clients.named("one").local().spawn(async move { Err(*stays) });
            clients.named("other").on(&executor).spawn(async { Err("elsewhere") });
        })
        .await;
    });
    let mut told = told.lock().unwrap();
    told.sort_by(|one, other| one.0.cmp(&other.0));
    let [here, elsewhere] = &told[..] else { panic!("two were told: {told:?}") };
    assert_eq!((&*here.0, &*elsewhere.0), ("`one`: here", "`other`: elsewhere"));
    assert_eq!(here.1, thread::current().id());
    assert_ne!(elsewhere.1, thread::current().id());
}

#[test]
fn supervised_children_are_stopped_and_clean_up_as_all_others() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            scope(async |s| {
                let clients = s.supervise(|_: ChildFailure<String>| ());
                for n in 1..=3 {
                    let child = child(probe.clone(), n);
                    clients.spawn(async move { child.await.map(drop) });
                }
            })
            .await;
        }
    });
    assert!(exploration.points() > 8, "{exploration}");
}

/// Fails, with a future that is not `Send`.
fn run_local<F: Future>(program: F) -> F::Output {
    RunLoop::new().block_on(program).unwrap()
}
