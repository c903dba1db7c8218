//! Small programs as a server engineer writes them in the first week: limits inside clean-up inside scopes, nested shields,
//! retries under a deadline, panics in a close, handles that are dropped late. Nothing is lost, and nothing hangs.
#![cfg(all(feature = "testing", feature = "net"))]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::cleanup::cleanups;
use convoke::env::current;
use convoke::prelude::*;
use convoke::retry::{Backoff, retry};
use convoke::scope::policy::ChildFailure;
use convoke::sync::{Semaphore, mpsc, watch};
use convoke::task::{forever, generator, map_concurrent, run_until_stopped};
use convoke::time::{Elapsed, interval, now, stop_after, timeout_at};

type Log = Arc<Mutex<Vec<String>>>;

fn say(log: &Log, text: impl Into<String>) {
    log.lock().unwrap().push(text.into());
}

fn said(log: &Log) -> Vec<String> {
    log.lock().unwrap().clone()
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A resource that says how its body ended, after a second.
struct Session(&'static str, Log);

impl AsyncClose for Session {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        sleep(seconds(1)).await;
        say(&self.1, format!("{}: {exit}", self.0));
        Ok(())
    }
}

#[convoke::test(virtual_time)]
async fn a_timeout_inside_a_resource_inside_a_scope_closes_once_and_goes_on() {
    let log = Log::default();
    let ended = scope(async |s| {
        let inner = log.clone();
        s.spawn_future(async move {
            using(Session("outer", inner.clone()), async |_| {
                let query = using(Session("inner", inner.clone()), async |_| forever().await);
                let elapsed: Result<(), Elapsed> = timeout(seconds(5), query).await;
                say(&inner, format!("elapsed: {}", elapsed.is_err()));
                sleep(seconds(1)).await;
                "went on"
            })
            .await
        })
        .await
    })
    .await;
    assert_eq!(ended, "went on");
    assert_eq!(
        said(&log),
        ["inner: was stopped (deadline passed)", "elapsed: true", "outer: returned a value"]
    );
}

#[convoke::test(virtual_time)]
async fn nested_shields_both_end_before_the_stop_takes_effect() {
    let log = Log::default();
    let work = async {
        shield(async {
            shield(async {
                sleep(seconds(2)).await;
                say(&log, "inner");
            })
            .await;
            sleep(seconds(2)).await;
            say(&log, "outer");
        })
        .await;
        sleep(seconds(1)).await;
        say(&log, "never");
    };
    let before = now();
    assert!(timeout(seconds(1), work).await.is_err());
    assert_eq!((now() - before, said(&log)), (seconds(4), vec!["inner".into(), "outer".into()]));
}

#[convoke::test(virtual_time)]
async fn a_timeout_inside_a_shield_still_elapses_by_itself() {
    let before = now();
    let work = shield(async { timeout(seconds(3), forever()).await.map(|never| match never {}) });
    let ended = timeout(seconds(1), work).await;
    assert_eq!(now() - before, seconds(3));
    // The value of what was shielded is not lost, though the time of the outer limit is up.
    assert!(matches!(ended, Ok(Err(_))), "{ended:?}");
}

#[convoke::test(virtual_time)]
async fn a_retry_under_a_deadline_gives_up_before_it_and_keeps_its_error() {
    let before = now();
    let mut attempts = 0;
    let ended = timeout_at(now() + seconds(10), async {
        retry(Backoff::constant(seconds(3)), || {
            attempts += 1;
            async move { Err::<(), _>(attempts) }
        })
        .await
    })
    .await;
    // At 0, 3, 6 and 9 seconds. The next pause would end after the deadline.
    assert_eq!((ended.unwrap(), now() - before), (Err(4), seconds(9)));
}

#[convoke::test(virtual_time)]
async fn a_retry_whose_attempt_hangs_is_cut_by_a_timeout_of_each_attempt() {
    let mut attempts = 0;
    let ended = retry(Backoff::constant(seconds(1)).up_to(2), || {
        attempts += 1;
        async move {
            if attempts < 3 {
                timeout(seconds(5), forever()).await.map_err(|_| "slow").map(|never| match never {})
            } else {
                Ok(attempts)
            }
        }
    })
    .await;
    assert_eq!(ended, Ok(3));
}

#[convoke::test(virtual_time)]
async fn a_panic_in_a_close_reaches_the_caller_and_the_outer_resource_closes() {
    struct Panics;
    impl AsyncClose for Panics {
        type Error = Never;
        async fn close(self, _: Exit) -> Result<(), Never> {
            sleep(seconds(1)).await;
            panic!("in the close")
        }
    }
    let log = Log::default();
    let outcome = scope(async |s| {
        let inner = log.clone();
        let child = s.spawn_future(async move {
            using(Session("outer", inner), async |_| using(Panics, async |_| 1).await).await
        });
        child.outcome().await
    })
    .await;
    assert!(
        matches!(&outcome, Outcome::Panicked(panic) if panic.message().contains("in the close")),
        "{outcome:?}"
    );
    assert!(said(&log)[0].starts_with("outer: panicked"), "{:?}", said(&log));
}

#[convoke::test(virtual_time)]
async fn a_handle_that_is_dropped_late_loses_no_panic() {
    let outcome = scope(async |s| {
        let child = s.spawn_future(async {
            scope(async |s| {
                let handle = s.spawn_future(async { panic!("lost?") });
                sleep(seconds(5)).await;
                drop::<convoke::scope::Handle<()>>(handle);
                sleep(seconds(5)).await;
            })
            .await
        });
        child.outcome().await
    })
    .await;
    assert!(matches!(&outcome, Outcome::Panicked(panic) if panic.message().contains("lost?")), "{outcome:?}");
}

#[convoke::test(virtual_time)]
async fn a_generator_whose_next_timed_out_goes_on_where_it_was() {
    let mut numbers = generator(async |y| {
        for n in 0.. {
            sleep(seconds(3)).await;
            y.yield_value(n).await;
        }
    });
    let mut heard = Vec::new();
    for _ in 0..6 {
        heard.push(timeout(seconds(2), numbers.next()).await.ok().flatten());
    }
    numbers.close().await;
    // Three seconds for each value, of which two are waited for at a time.
    assert_eq!(heard, [None, Some(0), None, Some(1), None, Some(2)]);
}

#[convoke::test(virtual_time)]
async fn a_select_loop_over_a_channel_a_ticker_and_a_stop_loses_no_message() {
    let (sender, mut receiver) = mpsc::channel(2);
    let (sum, ticks) = scope(async |s| {
        s.spawn(async move {
            for n in 1..=50_u32 {
                sender.send(n).await.unwrap();
                if n % 5 == 0 {
                    sleep(Duration::from_millis(700)).await;
                }
            }
        });
        let (mut sum, mut ticks, mut every) = (0, 0, interval(seconds(1)));
        loop {
            convoke::select! {
                received = receiver.recv() => match received {
                    Some(n) => sum += n,
                    None => break (sum, ticks),
                },
                _ = every.tick() => ticks += 1,
            }
        }
    })
    .await;
    assert_eq!(sum, 50 * 51 / 2);
    assert!((6..=9).contains(&ticks), "{ticks}");
}

#[convoke::test(virtual_time)]
async fn a_timeout_around_recv_in_a_loop_loses_no_message() {
    let (sender, mut receiver) = mpsc::channel(1);
    let heard = scope(async |s| {
        s.spawn(async move {
            for n in 0..20 {
                sleep(Duration::from_millis(10)).await;
                sender.send(n).await.unwrap();
            }
        });
        let mut heard = Vec::new();
        loop {
            match timeout(Duration::from_millis(10), receiver.recv()).await {
                Ok(Some(n)) => heard.push(n),
                Ok(None) => break heard,
                Err(_) => {}
            }
        }
    })
    .await;
    assert_eq!(heard, (0..20).collect::<Vec<_>>());
}

#[convoke::test(virtual_time)]
async fn a_failed_worker_stops_the_others_and_its_error_is_the_scopes() {
    let log = Log::default();
    let ended: Result<(), &str> = scope(async |s| {
        for n in 0..3 {
            let log = log.clone();
            s.named(format!("worker {n}")).spawn(async move {
                using(Session("worker", log), async |_| {
                    sleep(seconds(n + 1)).await;
                    if n == 0 { Err("broken") } else { Ok(()) }
                })
                .await
            });
        }
        Ok(())
    })
    .await;
    assert_eq!(ended, Err("broken"));
    assert_eq!(said(&log).len(), 3, "{:?}", said(&log));
}

#[convoke::test(virtual_time)]
async fn supervised_workers_that_panic_are_reported_and_others_go_on() {
    let log = Log::default();
    let reports = log.clone();
    scope(async |s| {
        let workers = s.supervise(move |failure: ChildFailure<Never>| say(&reports, failure.to_string()));
        for n in 0..3_u64 {
            let log = log.clone();
            workers.named(format!("worker {n}")).spawn(async move {
                sleep(seconds(n)).await;
                assert_ne!(n, 1, "number one");
                say(&log, format!("{n} done"));
                Ok(())
            });
        }
    })
    .await;
    let said = said(&log);
    assert!(said[0] == "0 done" && said[1].contains("number one") && said[2] == "2 done", "{said:?}");
}

#[convoke::test(virtual_time)]
async fn a_permit_is_given_back_by_a_task_that_was_stopped_while_it_held_it() {
    let permits = Arc::new(Semaphore::new(1));
    let held = permits.clone();
    let ended = timeout(seconds(1), async move {
        let _permit = held.acquire().await;
        forever().await
    })
    .await;
    assert!(ended.is_err());
    assert_eq!(permits.available(), 1);
}

#[convoke::test(virtual_time)]
async fn a_reload_restarts_the_inner_work_and_awaits_its_clean_up() {
    let log = Log::default();
    let (config, mut changes) = watch::channel(1);
    scope(async |s| {
        s.spawn(async move {
            for version in 2..=3 {
                sleep(seconds(10)).await;
                config.send(version).unwrap();
            }
            sleep(seconds(10)).await;
        });
        loop {
            let version = *changes.borrow_and_update();
            let reload = StopSource::new();
            let serves = run_until_stopped(
                reload.token(),
                using(Session("service", log.clone()), async |_| forever().await),
            );
            let waits = async {
                let open = changes.changed().await.is_ok();
                reload.request_stop(StopReason::Named("reload"));
                open
            };
            let (_, open) = join((serves, waits)).await;
            say(&log, format!("version {version} ended"));
            if !open {
                break;
            }
        }
    })
    .await;
    let closed = "service: was stopped (reload)";
    let expected = [closed, "version 1 ended", closed, "version 2 ended", closed, "version 3 ended"];
    assert_eq!(said(&log), expected);
}

#[convoke::test(virtual_time)]
async fn a_deadline_is_seen_by_children_and_by_clean_up_around_it() {
    let at = now() + seconds(4);
    let ended = timeout_at(at, async {
        scope(async |s| {
            let child = s.spawn_future(async { current::deadline() });
            assert_eq!(child.await, Some(at));
            forever().await
        })
        .await
    })
    .await;
    assert!(ended.is_err() && current::deadline().is_none());
}

#[convoke::test(virtual_time)]
async fn clean_ups_run_in_reverse_order_also_after_a_stop_in_the_middle() {
    let log = Log::default();
    let ended = timeout(
        seconds(3),
        cleanups(async |stack| {
            for name in ["first", "second", "third"] {
                let log = log.clone();
                stack.ensure(async move |_| {
                    sleep(seconds(1)).await;
                    say(&log, name);
                });
                sleep(seconds(2)).await;
            }
            Ok::<(), ()>(())
        }),
    )
    .await;
    assert!(ended.is_err());
    assert_eq!(said(&log), ["second", "first"]);
}

#[convoke::test(virtual_time)]
async fn a_bounded_map_under_a_timeout_closes_what_is_under_way() {
    let log = Log::default();
    let ended = timeout(seconds(3), async {
        map_concurrent(0..10_u64, 3, async |n| {
            using(Session("request", log.clone()), async |_| sleep(seconds(2 + n)).await).await;
            n
        })
        .collect::<Vec<_>>()
        .await
    })
    .await;
    assert!(ended.is_err());
    // The first has ended by itself; two were cut, and closed. No other one had begun.
    assert_eq!(said(&log).len(), 3, "{:?}", said(&log));
}

#[convoke::test(virtual_time)]
async fn stop_after_ends_a_server_loop_and_the_caller_with_it() {
    let log = Log::default();
    let outcome = scope(async |s| {
        let inner = log.clone();
        let server = s.spawn_future(async move {
            stop_after(seconds(5), using(Session("server", inner), async |_| forever().await)).await;
            unreachable!("a stop is not a value");
        });
        let outcome: Outcome<()> = server.outcome().await;
        outcome
    })
    .await;
    assert_eq!(
        (outcome, said(&log)),
        (Outcome::Stopped, vec!["server: was stopped (deadline passed)".into()])
    );
}

#[convoke::test]
async fn blocking_work_in_a_scope_hears_of_a_failed_sibling() {
    let ended: Result<(), &str> = scope(async |s| {
        let (began, wait) = convoke::sync::oneshot::channel();
        s.spawn(async move {
            blocking(move |inside| {
                _ = began.send(());
                while !inside.stop_requested() {
                    std::thread::yield_now();
                }
            })
            .await;
            Ok(())
        });
        s.spawn(async move {
            wait.await.unwrap();
            Err("sibling")
        });
        Ok(())
    })
    .await;
    assert_eq!(ended, Err("sibling"));
}

#[convoke::test(virtual_time)]
async fn the_reason_of_a_stop_goes_through_clean_up_around_a_handle() {
    let outcome = scope(async |s| {
        let log = Log::default();
        let child = s.spawn_future(async { forever().await });
        let stop = child.stop_handle();
        s.spawn(async move { stop.request_stop(StopReason::Named("logged out")) });
        let stopped = catch_stopped(using(Session("around", log.clone()), async |_| child.await)).await;
        (stopped.unwrap_err().reason(), said(&log))
    })
    .await;
    assert_eq!(
        outcome,
        (Some(StopReason::Named("logged out")), vec!["around: was stopped (logged out)".into()])
    );
}
