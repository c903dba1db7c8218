//! Tasks that wait for themselves, and for each other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke::executor::RunLoop;
use convoke::inspect::{Diagnosis, Finding, Owned};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::{Event, Mutex, Semaphore};
use convoke::testing::explore_stops;

use crate::diagnosis::programs::{Checker, first_of, line, only};

/// The lines of the waits of the classic futurelock: the one it sets aside, and the one that never ends.
static ASIDE: AtomicU32 = AtomicU32::new(0);
static FOR_EVER: AtomicU32 = AtomicU32::new(0);

/// Waits for the lock or the event, and after the event for the lock again. The first wait is neither polled
/// nor dropped.
async fn futurelock(lock: Arc<Mutex<()>>, event: Arc<Event>) {
    ASIDE.store(line() + 1, Ordering::Relaxed);
    let mut aside = pin!(lock.lock());
    first_of(aside.as_mut(), pin!(event.wait())).await;
    FOR_EVER.store(line() + 1, Ordering::Relaxed);
    drop(lock.lock().await);
}

#[test]
fn a_future_that_was_handed_the_lock_its_task_waits_for_is_named() {
    let mut checker = Checker::new(Diagnosis::new().by_hand());
    let run_loop = RunLoop::new();
    let start = launch(&run_loop.executor()).name("holder");
    let (lock, event, release) = (Arc::new(Mutex::new(())), Arc::new(Event::new()), Arc::new(Event::new()));
    let (held, released) = (lock.clone(), release.clone());
    let holder = start.start(async move {
        let _guard = held.lock().await;
        released.wait().await;
    });
    run_loop.run_ready();
    let launched = launch(&run_loop.executor()).name("T").start(futurelock(lock, event.clone()));
    run_loop.run_ready();
    assert!(checker.now().is_empty(), "it waits for both");
    event.set();
    run_loop.run_ready();
    assert!(checker.now().is_empty(), "the holder has not given it back, and may");
    release.set();
    run_loop.run_ready();
    let Finding::Futurelock(found) = only(checker.now()) else { panic!("a futurelock") };
    assert_eq!(found.task.name.as_deref(), Some("T"));
    assert_eq!(found.waits_at.line(), FOR_EVER.load(Ordering::Relaxed));
    assert_eq!(found.asked_at.unwrap().line(), ASIDE.load(Ordering::Relaxed));
    assert_eq!(found.owned, Owned::Handed);
    assert!(checker.after(3600).is_empty(), "it is said once");
    launched.request_stop(StopReason::Requested);
    run_loop.run_ready();
    assert!(launched.is_finished() && holder.is_finished());
}

#[test]
fn a_future_that_holds_the_lock_its_task_waits_for_is_named_when_it_has_lasted() {
    let mut checker = Checker::new(Diagnosis::new().every_lock(true).by_hand());
    let run_loop = RunLoop::new();
    let (lock, event) = (Arc::new(Semaphore::new(2)), Arc::new(Event::new()));
    let (shared, waited) = (lock.clone(), event.clone());
    let launched = launch(&run_loop.executor()).name("T").start(async move {
        let mut aside = pin!(async {
            let _permit = shared.acquire_many(2).await;
            never::<()>().await
        });
        first_of(aside.as_mut(), pin!(waited.wait())).await;
        drop(shared.acquire().await);
    });
    run_loop.run_ready();
    event.set();
    run_loop.run_ready();
    assert!(checker.now().is_empty(), "it may yet be polled");
    let Finding::Futurelock(found) = only(checker.after(10)) else { panic!("a futurelock") };
    assert_eq!((found.task.name.as_deref(), found.owned), (Some("T"), Owned::Held));
    assert_ne!(found.asked_at, Some(found.waits_at));
    assert!(checker.after(3600).is_empty(), "it is said once");
    lock.add_permits(1);
    run_loop.run_ready();
    assert!(launched.is_finished());
}

#[test]
fn tasks_that_wait_for_each_other_are_named_with_what_they_have() {
    let mut checker = Checker::new(Diagnosis::new().every_lock(true).by_hand());
    let run_loop = RunLoop::new();
    let locks = [Arc::new(Mutex::new(())), Arc::new(Mutex::new(()))];
    let both = |first: &Arc<Mutex<()>>, second: &Arc<Mutex<()>>, name: &str| {
        let (first, second) = (first.clone(), second.clone());
        launch(&run_loop.executor()).name(name).start(async move {
            let _first = first.lock().await;
            checkpoint().await;
            let _second = second.lock().await;
        })
    };
    let launched = [both(&locks[0], &locks[1], "one"), both(&locks[1], &locks[0], "other")];
    run_loop.run_ready();
    assert!(checker.now().is_empty(), "one of them may yet give in");
    let Finding::Deadlock(found) = only(checker.after(10)) else { panic!("a deadlock") };
    let said = found.to_string();
    let mut waits: Vec<_> = found
        .waits
        .iter()
        .map(|wait| (wait.task.name.as_deref().unwrap(), wait.held_by[0].0.name.as_deref().unwrap()))
        .collect();
    waits.sort_unstable();
    assert_eq!(waits, [("one", "other"), ("other", "one")], "{said}");
    assert!(said.starts_with("deadlock: 2 tasks wait for each other\n"), "{said}");
    assert!(said.contains("holds, asked for at") && said.contains("waits at"), "{said}");
    assert!(checker.after(3600).is_empty(), "it is said once");
    launched[0].request_stop(StopReason::Requested);
    run_loop.run_ready();
    assert!(launched.iter().all(|launched| launched.is_finished()));
}

#[test]
fn a_task_that_asks_twice_for_its_own_lock_waits_for_itself() {
    let mut checker = Checker::new(Diagnosis::new().every_lock(true).by_hand());
    let run_loop = RunLoop::new();
    let launched = launch(&run_loop.executor()).name("twice").start(async {
        let lock = Mutex::new(());
        let _guard = lock.try_lock().unwrap();
        let _again = lock.lock().await;
    });
    run_loop.run_ready();
    checker.now();
    let Finding::Futurelock(found) = only(checker.after(10)) else { panic!("a futurelock") };
    assert_eq!((found.task.name.as_deref(), found.asked_at), (Some("twice"), None));
    launched.request_stop(StopReason::Requested);
    run_loop.run_ready();
}

#[test]
fn quiet_is_reported_if_one_asks_for_it_with_who_waits() {
    let quiet = std::time::Duration::from_secs(60);
    let mut checker = Checker::new(Diagnosis::new().quiet_limit(quiet).by_hand());
    let run_loop = RunLoop::new();
    let launched = launch(&run_loop.executor()).name("patient").start(never::<()>().into_future());
    assert!(checker.after(600).is_empty() && checker.after(600).is_empty(), "it is queued");
    run_loop.run_ready();
    checker.now();
    assert!(checker.now().is_empty());
    let Finding::Quiet(found) = only(checker.after(60)) else { panic!("it is quiet") };
    assert!(found.tree.find("patient").is_some());
    assert!(checker.after(3600).is_empty(), "it is said once");
    launched.request_stop(StopReason::Requested);
    run_loop.run_ready();
}

#[test]
fn a_program_that_hangs_when_it_is_explored_is_told_why() {
    let program = || async {
        let (lock, event) = (Arc::new(Mutex::new(())), Arc::new(Event::new()));
        scope(async |s| {
            let (held, at) = (lock.clone(), event.clone());
            s.spawn(async move {
                let _guard = held.lock().await;
                at.set();
                checkpoint().await;
                checkpoint().await;
            });
            checkpoint().await;
            s.named("T").spawn(futurelock(lock, event));
        })
        .await
    };
    let failed = catch_unwind(AssertUnwindSafe(|| explore_stops(program)));
    let said = *failed.expect_err("it hangs").downcast::<String>().unwrap();
    assert!(said.contains("it hangs") && said.contains("futurelock: `T` ("), "{said}");
}

#[test]
fn a_child_whose_handle_is_dropped_at_once_is_reported_and_one_that_ran_is_not() {
    let mut checker = Checker::new(Diagnosis::new().by_hand());
    let spawned = line() + 5;
    let outcome = block_on(async {
        scope(async |s| {
            let ran = s.spawn_future(async { never::<()>().await });
            checkpoint().await;
            drop(s.spawn_future(async { 5 }));
            s.spawn(async {});
            drop(ran);
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(()));
    let Finding::Abandoned(found) = only(checker.now()) else { panic!("an abandoned child") };
    assert_eq!(found.location.line(), spawned);
    let said = Finding::Abandoned(found).to_string();
    assert!(said.contains("was asked to stop before it ran") && said.contains("`let _ =`"), "{said}");
    assert!(checker.now().is_empty(), "it is said once");
}
