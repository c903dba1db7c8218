//! A tokio runtime that is dropped while chains run, or are being cleaned up: nothing hangs, and clean-up that is cut
//! short is reported.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use convoke::cleanup::{GRACE, set_cleanup_hook};
use convoke::env::with_local;
use convoke::prelude::*;
use convoke::sync::Event;
use convoke::task::forever;
use convoke_tokio::{Workers, run};

use crate::log::{Log, OnDrop, multi_thread};

/// The hook is the process's, and tests may share one.
static HOOK: Mutex<()> = Mutex::new(());

fn problems(test: impl FnOnce()) -> Vec<String> {
    let _one_at_a_time = HOOK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (tell, told) = mpsc::channel();
    set_cleanup_hook(move |problem| tell.send(problem.to_string()).unwrap());
    test();
    set_cleanup_hook(|problem| eprintln!("{problem}"));
    told.try_iter().collect()
}

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn clean_up_under_way_is_reported_as_cut_short() {
    let log = Log::default();
    let problems = problems(|| {
        let runtime = current_thread();
        let (inside, begun) = (log.clone(), Arc::new(Event::new()));
        let tells = begun.clone();
        let chain = run(async move {
            let _dropped = OnDrop(inside, "the rest");
            ensure(
                async move |_| {
                    tells.set();
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                },
                async {},
            )
            .await
        });
        let handler = runtime.spawn(chain);
        runtime.block_on(begun.wait());
        drop(runtime);
        assert!(handler.is_finished());
    });
    assert_eq!(log.lines(), ["the rest"]);
    assert!(
        problems.iter().any(|problem| problem.contains("runtime_ends.rs") && problem.contains("cut short")),
        "{problems:?}"
    );
}

#[test]
fn a_chain_that_was_dropped_and_is_being_cleaned_up_is_reported_too() {
    let problems = problems(|| {
        let runtime = multi_thread(2);
        let (runs, cleans) = (Arc::new(Event::new()), Arc::new(Event::new()));
        let (tells_run, tells_clean) = (runs.clone(), cleans.clone());
        let handler = runtime.spawn(run(async move {
            let clean_up = async move |_| {
                tells_clean.set();
                tokio::time::sleep(Duration::from_secs(3600)).await;
            };
            let body = async {
                tells_run.set();
                forever().await
            };
            ensure(clean_up, body).await
        }));
        runtime.block_on(async {
            runs.wait().await;
            handler.abort();
            cleans.wait().await;
        });
        drop(runtime);
    });
    assert!(
        problems.iter().any(|problem| problem.contains("runtime_ends.rs") && problem.contains("cut short")),
        "{problems:?}"
    );
}

/// Without a grace period nothing but the future of another crate could wake it.
#[test]
fn a_chain_that_nothing_wakes_does_not_hold_up_the_end_of_the_runtime() {
    let problems = problems(|| {
        let runtime = current_thread();
        let begun = Arc::new(Event::new());
        let tells = begun.clone();
        drop(runtime.spawn(run(with_local(&GRACE, Duration::MAX, async move {
            let clean_up = async move |_| {
                tells.set();
                std::future::pending::<()>().await
            };
            ensure(clean_up, async {}).await
        }))));
        runtime.block_on(begun.wait());
        drop(runtime);
    });
    assert!(
        problems.iter().any(|problem| problem.contains("runtime_ends.rs") && problem.contains("cut short")),
        "{problems:?}"
    );
}

#[test]
fn a_chain_that_waits_is_stopped_and_its_destructors_run() {
    let log = Log::default();
    for runtime in [current_thread(), multi_thread(2)] {
        let (dropped, begun) = (OnDrop(log.clone(), "dropped"), Arc::new(Event::new()));
        let tells = begun.clone();
        let handler = runtime.spawn(run(async move {
            scope(async |s| {
                s.spawn(async move {
                    let _dropped = dropped;
                    tells.set();
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                });
                forever().await
            })
            .await
        }));
        runtime.block_on(begun.wait());
        drop(runtime);
        drop(handler);
    }
    assert_eq!(log.lines(), ["dropped", "dropped"]);
}

#[test]
fn work_on_workers_is_stopped_when_their_runtime_ends() {
    let runtime = multi_thread(2);
    let workers = Workers::on(runtime.handle());
    let begun = Arc::new(Event::new());
    let tells = begun.clone();
    let launched = launch(&workers).start(async move {
        scope(async |s| {
            s.spawn(async { sleep(Duration::from_secs(3600)).await });
            tells.set();
            tokio::time::sleep(Duration::from_secs(3600)).await;
        })
        .await
    });
    runtime.block_on(begun.wait());
    drop(runtime);
    launched.request_stop(StopReason::Shutdown);
    assert_eq!(launched.wait(), Outcome::Stopped);
    assert_eq!(launch(&workers).start(async { 7 }).wait(), Outcome::Stopped);
}
