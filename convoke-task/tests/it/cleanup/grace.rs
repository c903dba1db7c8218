//! The grace period, with a manual clock.

use std::time::Duration;

use convoke::cleanup::cleanups;
use convoke::cleanup::{DEFAULT_GRACE, GRACE, GRACE_OVER};
use convoke::env::Changes;
use convoke::env::Env;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::stopped;
use convoke::testing::{Clockwork, Connected};

use crate::cleanup::resources::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_clean_up_that_takes_longer_than_its_grace_is_asked_to_stop_and_waited_for() {
    assert_eq!(problems("takes_longer_than_its_grace"), [""; 0]);
    let clock = Clockwork::new();
    let log = Log::default();
    let also = log.clone();
    let clean_up = async move |_: Exit| {
        let caught = catch_stopped(async { never::<()>().await }).await;
        also.add(format!("{}", caught.unwrap_err()));
        // The clean-up is asked to stop, but goes on, because it does not check.
        just(()).await;
        also.add("drained");
        checkpoint().await;
        also.add("not reached");
    };
    let work = task(async move { ensure(clean_up, async { 7 }).grace(5 * SECOND).await });
    let running = Connected::with_env(work, Env::from(clock.clone())).start();
    clock.advance(5 * SECOND - Duration::from_nanos(1));
    assert_eq!((running.is_complete(), log.lines().len()), (false, 0));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(running.outcome(), Outcome::Value(7));
    assert_eq!(log.lines(), ["stopped: grace period over", "drained"]);
    let problems = problems("takes_longer_than_its_grace");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].ends_with("was stopped before it had ended: grace period over"), "{problems:?}");
}

#[test]
fn the_grace_is_said_around_or_is_the_default() {
    let _reported = problems("");
    let clock = Clockwork::new();
    for (said, grace) in [(None, DEFAULT_GRACE), (Some(SECOND), SECOND), (Some(100 * SECOND), 100 * SECOND)] {
        let changes = Changes::new();
        let changes = match said {
            Some(grace) => changes.local(&GRACE, grace),
            None => changes,
        };
        let deadline = clock.now() + grace;
        let clean_up = async move |_: Exit| {
            assert_eq!(convoke::env::current::deadline(), Some(deadline));
            never::<()>().await
        };
        let work = task(async move { ensure(clean_up, async { stopped().await }).await });
        let running = Connected::with_env(work, Env::from(clock.clone()).with(changes)).start();
        clock.advance(grace - Duration::from_nanos(1));
        assert!(!running.is_complete());
        clock.advance(Duration::from_nanos(1));
        assert_eq!(running.outcome(), Outcome::Stopped);
    }
}

#[test]
fn a_clean_up_for_ever_is_not_asked() {
    let clock = Clockwork::new();
    let clean_up = async |_: Exit| {
        assert_eq!(convoke::env::current::deadline(), None);
        sleep(1_000_000 * SECOND).await;
    };
    let work = task(async move { ensure(clean_up, async { 7 }).grace(Duration::MAX).await });
    let running = Connected::with_env(work, Env::from(clock.clone())).start();
    clock.advance(1_000_000 * SECOND);
    assert_eq!(running.outcome(), Outcome::Value(7));
}

#[test]
fn a_clean_up_in_time_leaves_no_timer_behind() {
    let clock = Clockwork::new();
    let work = task(async {
        ensure(async |_| sleep(SECOND).await, async { 7 }).await;
        convoke::env::current::stop_requested()
    });
    let running = Connected::with_env(work, Env::from(clock.clone())).start();
    clock.advance(SECOND);
    assert_eq!(running.outcome(), Outcome::Value(false));
}

#[test]
fn a_stop_does_not_end_the_grace_early() {
    let clock = Clockwork::new();
    let log = Log::default();
    let source = StopSource::new();
    let also = log.clone();
    let work = task(async move {
        let clean_up = async |_: Exit| {
            sleep(10 * SECOND).await;
            also.add("slept");
        };
        ensure(clean_up, async { never::<()>().await }).await
    });
    let env = Env::from(clock.clone()).with(Changes::new().stop_token(source.token()));
    let running = Connected::with_env(work, env).start();
    clock.advance(SECOND);
    source.request_stop(StopReason::Requested);
    clock.advance(9 * SECOND);
    assert!(!running.is_complete());
    clock.advance(SECOND);
    assert_eq!(running.outcome(), Outcome::Stopped);
    assert_eq!(log.lines(), ["slept"]);
}

#[test]
fn a_stack_has_one_grace_for_all_and_each_is_asked_when_it_is_over() {
    let _reported = problems("");
    let clock = Clockwork::new();
    let log = Log::default();
    let also = log.clone();
    let work = task(async move {
        let also = &also;
        cleanups(async |cleanups| {
            cleanups.ensure(async |_| also.add(format!("{:?}", convoke::env::current::stop_reason())));
            cleanups.ensure(async |_| sleep(3 * SECOND).await);
            cleanups.ensure(async |_| {
                sleep(3 * SECOND).await;
                also.add("slept");
            });
            Ok::<_, Refused>(7)
        })
        .grace(5 * SECOND)
        .await
    });
    let running = Connected::with_env(work, Env::from(clock.clone())).start();
    clock.advance(5 * SECOND);
    assert_eq!(running.outcome(), Outcome::Value(Ok(7)));
    assert_eq!(log.lines(), ["slept".to_owned(), format!("{:?}", Some(GRACE_OVER))]);
}
