//! Schedules: number and length of pauses, with a manual clock; and stops during a pause.
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke::prelude::*;
use convoke::retry::{Backoff, repeat, retry, retry_if};
use convoke::task::task;
use convoke::testing::{Clockwork, Connected, explore_stops_with};
use convoke::time::timeout_at;

const SECOND: Duration = Duration::from_secs(1);

/// Times at which something was done, by a manual clock.
#[derive(Clone)]
struct Diary {
    clockwork: Clockwork,
    begin: Instant,
    entries: Arc<Mutex<Vec<u64>>>,
}

impl Diary {
    fn new() -> Self {
        let clockwork = Clockwork::new();
        Self { begin: clockwork.now(), clockwork, entries: Arc::default() }
    }

    fn note(&self) -> usize {
        let mut entries = self.entries.lock().unwrap();
        entries.push((self.clockwork.now() - self.begin).as_secs());
        entries.len()
    }

    /// Runs a program for a day. Returns its output, and the times that were noted.
    fn day<T: Send + 'static>(
        &self,
        program: impl Future<Output = T> + Send + 'static,
    ) -> (Outcome<T>, Vec<u64>) {
        let running = Connected::with_env(task(program), self.clockwork.clone().into()).start();
        self.clockwork.advance(86_400 * SECOND);
        (running.outcome(), self.entries.lock().unwrap().clone())
    }
}

#[test]
fn attempts_are_made_when_the_schedule_says_until_one_succeeds() {
    let diary = Diary::new();
    let notes = diary.clone();
    let (outcome, at) = diary.day(async move {
        let schedule = Backoff::exponential(SECOND).at_most(4 * SECOND);
        retry(schedule, async || if notes.note() < 6 { Err("not yet") } else { Ok("now") }).await
    });
    assert_eq!(outcome, Outcome::Value(Ok("now")));
    assert_eq!(at, [0, 1, 3, 7, 11, 15]);
}

#[test]
fn the_last_error_is_told_when_the_schedule_has_ended_or_the_error_will_stay() {
    let diary = Diary::new();
    let notes = diary.clone();
    let (outcome, at) = diary.day(async move {
        let all = retry([SECOND, 5 * SECOND], async || Err::<(), _>(notes.note())).await;
        let some =
            retry_if(Backoff::constant(SECOND), |n| *n != 5, async || Err::<(), _>(notes.note())).await;
        (all, some)
    });
    assert_eq!(outcome, Outcome::Value((Err(3), Err(5))));
    assert_eq!(at, [0, 1, 6, 6, 7]);
}

#[test]
fn no_wait_is_begun_that_the_deadline_would_cut_short() {
    let diary = Diary::new();
    let notes = diary.clone();
    let (outcome, at) = diary.day(async move {
        let end = notes.begin + 10 * SECOND;
        timeout_at(end, retry(Backoff::exponential(SECOND), async || Err::<(), _>(notes.note()))).await
    });
    // The pause of eight seconds would end after the deadline.
    assert_eq!(outcome, Outcome::Value(Ok(Err(4))));
    assert_eq!(at, [0, 1, 3, 7]);
}

#[test]
fn it_is_repeated_until_the_schedule_ends_or_it_is_enough() {
    let diary = Diary::new();
    let notes = diary.clone();
    let (outcome, at) = diary.day(async move {
        repeat(Backoff::constant(10 * SECOND).up_to(2), async || {
            notes.note();
        })
        .await;
        let flow = repeat(Backoff::constant(SECOND), async || match notes.note() {
            5 => ControlFlow::Break("five"),
            _ => ControlFlow::Continue(()),
        })
        .await;
        let failed = repeat(Backoff::constant(SECOND), async || Err::<(), _>(notes.note())).await;
        (flow, failed)
    });
    assert_eq!(outcome, Outcome::Value((ControlFlow::Break("five"), Err(6))));
    assert_eq!(at, [0, 10, 20, 20, 21, 21]);
}

#[test]
fn a_stop_at_any_point_ends_it_and_cleans_up_the_attempt() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            let mut attempts = 0;
            retry(Backoff::exponential(SECOND).jitter(0.5).seed(1).up_to(3), || {
                attempts += 1;
                let probe = probe.clone();
                async move {
                    probe.acquired("attempt");
                    let clean_up = async |_| {
                        checkpoint().await;
                        probe.cleaned_up("attempt");
                    };
                    ensure(clean_up, async {
                        checkpoint().await;
                        if attempts < 4 { Err("not yet") } else { Ok(()) }
                    })
                    .await
                }
            })
            .await
        }
    });
    assert!(exploration.points() >= 11, "{exploration}");
}
