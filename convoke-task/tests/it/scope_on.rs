//! Scopes whose children run on other executors: which part runs where, and that the scope waits for all of
//! them.
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use convoke::env::current;
use convoke::prelude::*;
use convoke::scope::policy::{On, Supervise};
use convoke::scope::{scope_on, scope_with};
use convoke::sender::prelude::*;
use convoke::task::forever;
use convoke_exec::PoolExecutor;

/// Returns true if the caller runs on that executor.
fn here(executor: &PoolExecutor) -> bool {
    current::executor().is(executor)
}

#[test]
fn children_run_there_and_the_body_stays() {
    let pool = ThreadPool::new(2).unwrap();
    let there = pool.executor();
    let outcome = sync_wait(task(async move {
        scope_on(&there, async |s| {
            s.spawn(async move { assert!(here(&there)) });
            s.named("with a name").spawn(async move { assert!(here(&there)) });
            let with_handle = s.spawn_future(async move {
                checkpoint().await;
                here(&there)
            });
            assert!(with_handle.await);
            here(&there)
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(false));
}

#[test]
fn the_children_of_children_run_there_too_and_those_of_the_body_do_not() {
    let pool = ThreadPool::new(2).unwrap();
    let there = pool.executor();
    let outcome = sync_wait(task(async move {
        scope_on(&there, async |s| {
            let below = s.spawn_future(async move {
                scope(async |s| s.spawn_future(async move { here(&there) }).await).await
            });
            let beside = scope(async |s| s.spawn_future(async move { here(&there) }).await).await;
            (below.await, beside)
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value((true, false)));
}

#[test]
fn a_child_that_says_otherwise_runs_where_it_says() {
    let (one, other) = (ThreadPool::new(1).unwrap(), ThreadPool::new(1).unwrap());
    let (there, elsewhere) = (one.executor(), other.executor());
    let outcome = sync_wait(task(async move {
        scope_on(&there, async |s| {
            s.child().on(&elsewhere).spawn(async move { assert!(here(&elsewhere) && !here(&there)) });
        })
        .await;
    }));
    assert_eq!(outcome, Outcome::Value(()));
}

#[test]
fn a_child_with_a_handle_runs_where_it_says_and_is_stopped_there() {
    let pool = ThreadPool::new(1).unwrap();
    let there = pool.executor();
    let outcome = sync_wait(task(async move {
        scope(async |s| {
            let returns = s.child().on(&there).spawn_future(async move {
                checkpoint().await;
                here(&there)
            });
            let waits = s.named("with a name").on(&there).spawn_future(async { forever().await });
            waits.request_stop(StopReason::Requested);
            let named = s.named("with a name").on(&there).spawn_future(async move { here(&there) });
            (returns.await && named.await, catch_stopped(waits).await.is_err())
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value((true, true)));
}

#[test]
fn the_handle_of_a_child_elsewhere_may_be_kept_for_longer_than_its_scope() {
    let pool = ThreadPool::new(1).unwrap();
    let there = pool.executor();
    let outcome = sync_wait(task(async move {
        let handle =
            scope(async |s| s.child().on(&there).spawn_future(async { "said there".to_owned() })).await;
        handle.await
    }));
    assert_eq!(outcome, Outcome::Value("said there".to_owned()));
}

#[test]
fn the_first_failure_there_stops_the_others_and_is_the_scopes() {
    let pool = ThreadPool::new(2).unwrap();
    let there = pool.executor();
    let outcome = sync_wait(task(async move {
        scope_on(&there, async |s| {
            s.spawn(async { forever().await });
            s.spawn(async { Err("it broke there") });
            forever().await
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(Err::<(), _>("it broke there")));
}

#[test]
fn if_the_executor_has_ended_the_children_are_stopped_and_the_scope_ends() {
    let pool = ThreadPool::new(1).unwrap();
    let there = pool.executor();
    drop(pool);
    let outcome = sync_wait(task(async move {
        scope_on(&there, async |s| {
            s.spawn(async { unreachable!("it never runs") });
            "the body"
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value("the body"), "a child that stops by itself is merely gone");
}

#[test]
fn a_policy_says_where_its_children_run() {
    let pool = ThreadPool::new(2).unwrap();
    let there = pool.executor();
    let report = sync_wait(task(async move {
        scope_with(On::new(&there, Supervise), async |s| {
            s.spawn(async move { Ok(here(&there)) });
            s.spawn(async { Err("this one fails") });
            assert!(!here(&there));
        })
        .await
    }))
    .unwrap();
    assert_eq!(report.values, [true]);
    assert_eq!(report.failures.to_string().lines().count(), 1);
}

#[test]
fn children_that_are_not_send_start_only_from_the_one_thread_that_runs_them() {
    let pool = ThreadPool::new(1).unwrap();
    let there = pool.executor();
    let message = Arc::new(Mutex::new(String::new()));
    let told = message.clone();
    let outcome = sync_wait(task(async move {
        scope_on(&there, async move |s| {
            let started = convoke::Panic::catch(|| {
                s.child().local().spawn(async { drop(Rc::new(())) });
            });
            *told.lock().unwrap() = started.unwrap_err().message().to_owned();
        })
        .await;
        // The run loop of the caller is an executor with one thread.
        scope_on(&current::executor(), async |s| s.child().local().spawn(async { drop(Rc::new(())) })).await;
    }));
    assert_eq!(outcome, Outcome::Value(()));
    assert!(message.lock().unwrap().contains("needs a scope whose executor has one thread"));
}
