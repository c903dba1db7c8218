//! The builder of a child: its options combine, in every kind of scope, and cost nothing where they are not set.
use std::cell::Cell;
use std::mem::{size_of_val, take};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use convoke::alloc::{Counting, FrameAllocator};
use convoke::env::Changes;
use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::retry::Backoff;
use convoke::scope::policy::{ChildFailure, FirstError, Supervise, WaitForAll};
use convoke::scope::{Bound, local_scope_not_send, scope_with};
use convoke::sender::prelude::*;
use convoke::task::forever;
use convoke::testing::explore_stops_with;
use convoke::{Scope, blocking_scope};

const AT_ONCE: Backoff = Backoff::constant(Duration::ZERO);

/// Runs a program, and returns its output.
fn run<T: Send + 'static>(program: impl Future<Output = T> + Send + 'static) -> T {
    sync_wait(task(program)).unwrap()
}

/// Makes a closure for a child that fails `failures` times, and then returns the number of its attempts.
fn fails(failures: u32) -> impl FnMut() -> std::future::Ready<Result<u32, String>> + Send + 'static {
    let mut attempts = 0;
    move || {
        attempts += 1;
        std::future::ready(if attempts > failures {
            Ok(attempts)
        } else {
            Err(format!("failure {attempts}"))
        })
    }
}

#[test]
fn a_child_has_a_name_an_executor_a_permit_restarts_and_a_handle_at_once() {
    let pool = ThreadPool::new(1).unwrap();
    let (executor, reports) = (pool.executor(), Arc::new(Mutex::new(Vec::new())));
    let told = reports.clone();
    let (value, free) = run(async move {
        let (bound, here) = (Bound::new(3), thread::current().id());
        let free = bound.clone();
        let value = scope(async |s| {
            let mut make = fails(2);
            let worker = s
                .child()
                .name("worker")
                .on(&executor)
                .permit(bound.take(2).await)
                .restart(AT_ONCE)
                .report(move |failure: &ChildFailure<String>| told.lock().unwrap().push(failure.to_string()))
                .spawn_future(move || {
                    assert_ne!(thread::current().id(), here);
                    make()
                });
            worker.await
        })
        .await;
        (value, free.free())
    });
    assert_eq!((value, free), (Ok(3), 3));
    assert_eq!(*reports.lock().unwrap(), ["`worker`: failure 1", "`worker`, attempt 2: failure 2"]);
}

#[test]
fn options_are_set_in_any_order() {
    let values = run(async {
        let bound = Bound::new(4);
        scope(async |s| {
            let one =
                s.child().restart(AT_ONCE).permit(bound.take(1).await).name("one").spawn_future(fails(1));
            let report = |_: &ChildFailure<String>| ();
            let other = s
                .child()
                .permit(bound.take(1).await)
                .restart(AT_ONCE)
                .permit(bound.take(1).await)
                .report(report)
                .spawn_future(fails(2));
            (one.await, other.await)
        })
        .await
    });
    assert_eq!(values, (Ok(2), Ok(3)));
}

#[test]
fn the_last_failure_of_a_restarted_child_is_the_scopes() {
    let error = run(async {
        scope(async |s| {
            let mut make = fails(9);
            s.child().restart(AT_ONCE.up_to(2)).spawn(move || {
                let made = make();
                async move { made.await.map(drop) }
            });
            forever().await
        })
        .await
    });
    assert_eq!(error, Err::<(), _>("failure 3".to_owned()));

    let attempts = Arc::new(AtomicUsize::new(0));
    let count = attempts.clone();
    let panics = async move {
        scope(async |s| {
            s.named("brittle").restart(AT_ONCE.up_to(2)).spawn(move || {
                let attempt = count.fetch_add(1, Ordering::Relaxed);
                async move { if attempt < 1 { Err(1) } else { panic!("at attempt {attempt}") } }
            });
            Ok::<(), i32>(())
        })
        .await
    };
    let panic = catch_unwind(AssertUnwindSafe(|| sync_wait(task(panics)))).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("`brittle`") && message.ends_with("at attempt 2"), "{message}");
    assert_eq!(attempts.load(Ordering::Relaxed), 3);
}

#[test]
fn a_local_child_is_restarted_too_and_its_handle_gets_the_last_failure() {
    let (failed, value) = RunLoop::new()
        .block_on(async {
            scope(async |s| {
                let runs = Rc::new(Cell::new(0));
                let count = runs.clone();
                let make = move || {
                    count.set(count.get() + 1);
                    let runs = count.clone();
                    async move { if runs.get() < 3 { Err(runs.get()) } else { Ok(runs) } }
                };
                let failed = s.child().local().restart(AT_ONCE.up_to(1)).spawn_future(make.clone()).await;
                let value = s.child().local().name("again").restart(AT_ONCE).spawn_future(make).await;
                (failed.unwrap_err(), value.unwrap().get())
            })
            .await
        })
        .unwrap();
    assert_eq!((failed, value), (2, 3));
}

#[test]
fn a_child_of_a_local_scope_borrows_and_has_the_same_options() {
    let program = async {
        let (bound, mut attempts, text) = (Bound::new(1), 0, String::from("three"));
        let value = local_scope(async |s| {
            let child = s.child().name("borrows").permit(bound.take(1).await).restart(AT_ONCE);
            let child = child.spawn_future(|| {
                attempts += 1;
                let length = text.len();
                async move { if attempts < 3 { Err("not yet") } else { Ok(length) } }
            });
            child.await
        })
        .await;
        let stays = Rc::new(5);
        let named = local_scope_not_send(async |s| {
            s.named("stays").spawn(async { assert_eq!(text.len(), *stays) });
            s.child().spawn_future(async { *stays + text.len() }).await
        });
        (value, named.await, bound.free())
    };
    let (value, named, free) = RunLoop::new().block_on(program).unwrap();
    assert_eq!((value, named, free), (Ok(5), 10, 1));
}

#[test]
fn a_child_of_a_blocking_scope_borrows_and_has_the_same_options() {
    let pool = ThreadPool::new(2).unwrap();
    let (attempts, bound) = (AtomicUsize::new(0), Bound::new(1));
    let permit = sync_wait(task(bound.take(1))).unwrap();
    let outcome = blocking_scope(&pool.executor(), |s| {
        let child = s.child().name("borrows").permit(permit).restart(AT_ONCE);
        let child = child.spawn_future(|| async {
            match attempts.fetch_add(1, Ordering::Relaxed) {
                0 => panic!("first"),
                1 => Err("second"),
                third => Ok(third),
            }
        });
        child.wait()
    });
    assert_eq!(outcome, Outcome::Value(Ok(2)));
    assert_eq!((attempts.into_inner(), bound.free()), (3, 1));
}

#[test]
fn a_child_of_a_policy_with_a_handle_gives_its_result_to_the_handle() {
    let (all, alone) = run(async {
        let all = scope_with(FirstError, async |s| {
            let failed = s.spawn_future(async { Err::<(), _>("for the handle") });
            let value = s.named("value").spawn_future(async { 1 }).await;
            s.spawn(async move { Ok::<_, String>(value) });
            assert_eq!(failed.await, Err("for the handle"));
        })
        .await;
        // A daemon is not stopped while a child with a handle works.
        let alone = scope_with::<_, (), String, _, _>(WaitForAll, async |s| {
            let ended = Arc::new(AtomicUsize::new(0));
            let (count, seen) = (ended.clone(), ended);
            let slow = s.spawn_future(async move {
                for _ in 0..8 {
                    checkpoint().await;
                }
                count.fetch_add(1, Ordering::Relaxed);
            });
            s.named("daemon").daemon().spawn(async move {
                let clean_up = async |_| assert_eq!(seen.load(Ordering::Relaxed), 1);
                ensure(clean_up, async { forever().await }).await
            });
            slow.await;
        })
        .await;
        (all, alone.is_ok())
    });
    assert_eq!((all, alone), (Ok(vec![1]), true));
}

#[test]
fn a_daemon_is_restarted_and_its_last_failure_goes_to_the_policy() {
    let report = run(async {
        scope_with::<_, (), String, _, _>(Supervise, async |s| {
            let mut make = fails(9);
            s.named("daemon").daemon().restart(AT_ONCE.up_to(1)).spawn(move || {
                let made = make();
                async move { made.await.map(drop) }
            });
            for _ in 0..8 {
                checkpoint().await;
            }
        })
        .await
    });
    assert_eq!(report.failures.to_string(), "`daemon`, attempt 2: failure 2");
}

#[test]
fn a_supervised_child_is_restarted_under_a_bound_and_reported_at_its_end() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    let free = run(async move {
        let bound = Bound::new(2);
        scope(async |s| {
            let clients = s.supervise(move |failure: ChildFailure<String>| {
                tell.lock().unwrap().push(failure.to_string());
            });
            for n in 0..4 {
                let mut make = fails(9);
                let child = clients.named(format!("client {n}")).permit(bound.take(1).await);
                child.restart(AT_ONCE.up_to(n)).spawn(move || {
                    let made = make();
                    async move { made.await.map(drop) }
                });
            }
            assert_eq!(clients.spawn_future(async { "value" }).await, "value");
        })
        .await;
        bound.free()
    });
    assert_eq!(free, 2);
    let mut told = take(&mut *told.lock().unwrap());
    told.sort();
    let expected = [
        "`client 0`: failure 1",
        "`client 1`, attempt 2: failure 2",
        "`client 2`, attempt 3: failure 3",
        "`client 3`, attempt 4: failure 4",
    ];
    assert_eq!(told, expected);
}

#[test]
fn results_come_from_children_with_options() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let mut taken = run(async move {
        scope(async |s| {
            let mut results = s.results();
            results.child().name("far").on(&executor).spawn(async { Ok(1) });
            results.named("again").restart(AT_ONCE).spawn(fails(1));
            let mut taken = Vec::new();
            while let Some(result) = results.next().await {
                taken.push(result);
            }
            taken
        })
        .await
    });
    taken.sort();
    assert_eq!(taken, [Ok(1), Ok(2)]);
}

#[test]
fn wherever_a_restarted_child_is_stopped_it_cleans_up_and_returns_its_permit() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            let bound = Bound::new(1);
            let inside = bound.clone();
            let ended = catch_stopped(scope(async |s| {
                let child = s.child().name("worker").permit(inside.take(1).await);
                let mut attempts = 0;
                child.restart(Backoff::constant(Duration::from_secs(1)).up_to(3)).spawn(move || {
                    attempts += 1;
                    let (probe, attempt) = (probe.clone(), attempts);
                    async move {
                        probe.acquired("attempt");
                        ensure(async |_| probe.cleaned_up("attempt"), async {
                            checkpoint().await;
                            if attempt < 3 { Err("fails") } else { Ok(()) }
                        })
                        .await
                    }
                });
                Ok(())
            }))
            .await;
            assert_eq!(bound.free(), 1, "{ended:?}");
        }
    });
    assert!(exploration.points() > 6, "{exploration}");
}

/// Size of a large future, in bytes.
const LARGE: usize = 4096;

/// A future that keeps `LARGE` bytes across its wait.
async fn large() -> Result<(), String> {
    let bytes = [1_u8; LARGE];
    checkpoint().await;
    if bytes.iter().all(|&byte| byte == 1) { Ok(()) } else { Err("changed".to_owned()) }
}

/// Returns the bytes that a child has in the frame allocator of its task.
fn bytes_of_a_child(spawn: impl FnOnce(&Scope<()>) + Send + 'static) -> usize {
    let counting = Counting::new(FrameAllocator::system());
    let changes = Changes::new().allocator(FrameAllocator::new(counting.clone()));
    let outcome = sync_wait_with(
        changes,
        task(async move {
            scope(async |s| {
                let before = counting.live_bytes();
                spawn(&s);
                BYTES.set(counting.live_bytes() - before);
            })
            .await;
            BYTES.get()
        }),
    );
    outcome.unwrap()
}

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

#[test]
fn the_future_of_a_child_is_kept_once_whatever_its_options_are() {
    let future = size_of_val(&large());
    let plain = bytes_of_a_child(|s| s.spawn(async { _ = large().await }));
    let sizes = [
        ("supervised", bytes_of_a_child(|s| s.supervise(|_: ChildFailure<String>| ()).spawn(large()))),
        ("a result", bytes_of_a_child(|s| s.results().spawn(large()))),
        (
            "restarted",
            bytes_of_a_child(|s| {
                s.supervise(|_: ChildFailure<String>| ()).child().restart(AT_ONCE).spawn(large)
            }),
        ),
        ("with a permit", {
            let permit = sync_wait(task(Bound::new(1).take(1))).unwrap();
            bytes_of_a_child(|s| s.child().permit(permit).spawn(async { _ = large().await }))
        }),
    ];
    assert!(plain < future + 512, "{plain}");
    for (which, size) in sizes {
        assert!(size < future + 768, "{which}: {size} bytes for a future of {future}");
    }
}

#[test]
fn the_body_and_the_children_of_a_scope_with_a_policy_are_kept_once() {
    let (body, child) = run(async {
        let counting = Counting::new(FrameAllocator::system());
        let watched = counting.clone();
        let opened = scope_with::<_, (), String, _, _>(WaitForAll, async move |_| {
            let _watched = watched;
            large().await
        });
        let body = size_of_val(&opened);
        opened.await.unwrap();
        let changes = Changes::new().allocator(FrameAllocator::new(counting.clone()));
        let child = sync_wait_with(
            changes,
            task(async move {
                let bytes = Arc::new(AtomicUsize::new(0));
                let told = bytes.clone();
                scope_with(WaitForAll, async move |s| {
                    let before = counting.live_bytes();
                    s.spawn(large());
                    told.store(counting.live_bytes() - before, Ordering::Relaxed);
                })
                .await
                .unwrap();
                bytes.load(Ordering::Relaxed)
            }),
        );
        (body, child.unwrap())
    });
    let future = size_of_val(&large());
    assert!(body < future + 512, "the body: {body} bytes for a future of {future}");
    assert!(child < future + 512, "a child: {child} bytes for a future of {future}");
}
