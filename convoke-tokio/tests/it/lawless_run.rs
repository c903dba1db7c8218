//! `run` as safe code may misuse it: dropped at any poll, polled in another runtime or in none, sent out of the chain it is a part
//! of, polled after its end, forgotten.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use convoke::prelude::*;
use convoke::task::forever;
use convoke_tokio::{finish, run};

use crate::log::{Log, OnDrop, Transaction, multi_thread};

type Running<T> = Pin<Box<dyn Future<Output = Result<T, Stopped>> + Send>>;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

/// Polls it once, in the task that awaits this.
async fn poll_once<T>(running: &mut Running<T>) -> Poll<Result<T, Stopped>> {
    poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await
}

/// Opens a transaction around two children and a time of each clock.
async fn transacts(log: Log) -> u32 {
    let _dropped = OnDrop(log.clone(), "frame");
    using(Transaction(log), async |_| {
        scope(async |s| {
            let one = s.spawn_future(async {
                checkpoint().await;
                sleep(Duration::from_millis(2)).await;
                20
            });
            let other = s.spawn_future(async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                22
            });
            one.await + other.await
        })
        .await
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_poll_it_closes_what_it_has_opened_once() {
    let mut cut = 0;
    for polls in 0.. {
        let log = Log::default();
        let mut running: Running<u32> = Box::pin(run(transacts(log.clone())));
        let mut ended = None;
        for _ in 0..polls {
            if let Poll::Ready(sum) = poll_once(&mut running).await {
                ended = Some(sum);
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(running);
        finish(LONG).await.unwrap();
        match (ended, polls) {
            (Some(sum), _) => {
                assert_eq!((sum, log.lines()), (Ok(42), vec!["commit".to_owned(), "frame".to_owned()]));
                break;
            }
            (None, 0) => assert_eq!(log.lines(), [""; 0], "it has not begun"),
            (None, _) => {
                cut += 1;
                let lines = log.lines();
                assert!(lines == ["rollback", "frame"] || lines == ["commit", "frame"], "{lines:?}");
            }
        }
    }
    assert!(cut >= 3, "{cut} polls are too few to be a test");
}

#[test]
fn begun_in_one_runtime_it_goes_on_in_another() {
    let (first, second) = (multi_thread(1), multi_thread(1));
    let log = Log::default();
    let mut running: Running<u32> = Box::pin(run(transacts(log.clone())));
    assert!(first.block_on(poll_once(&mut running)).is_pending());
    assert_eq!(second.block_on(running), Ok(42));
    assert_eq!(log.lines(), ["commit", "frame"]);
    first.block_on(finish(LONG)).unwrap();
    second.block_on(finish(LONG)).unwrap();
}

/// The second poll panics or does not, as tokio's timers do; the chain is closed in any case.
#[test]
fn when_the_runtime_it_began_in_has_ended_it_is_cut_short_wherever_it_is_polled_and_dropped() {
    let (first, second) = (multi_thread(1), multi_thread(1));
    let log = Log::default();
    let mut running: Running<u32> = Box::pin(run(transacts(log.clone())));
    assert!(first.block_on(poll_once(&mut running)).is_pending());
    drop(first);
    let polled = catch_unwind(AssertUnwindSafe(|| second.block_on(poll_once(&mut running))));
    assert!(!matches!(polled, Ok(Poll::Ready(Ok(_)))), "tokio's timer of the first runtime is gone");
    drop(running);
    let lines = log.lines();
    assert_eq!(lines.iter().filter(|line| *line == "frame").count(), 1, "{lines:?}");
}

#[test]
fn polled_outside_of_all_runtimes_it_panics_or_waits_and_goes_on_inside() {
    let runtime = multi_thread(1);
    let log = Log::default();
    let mut running: Running<u32> = Box::pin(run(transacts(log.clone())));
    assert!(runtime.block_on(poll_once(&mut running)).is_pending());
    for _ in 0..3 {
        let mut cx = Context::from_waker(Waker::noop());
        let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(&mut cx)));
        assert!(!matches!(polled, Ok(Poll::Ready(Ok(_)))));
    }
    // What needs a runtime panics in the chain, if it ran outside: that is then its end.
    let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(running)));
    assert!(ended.is_err() || ended.is_ok_and(|sum| sum == Ok(42)));
    assert_eq!(log.lines().iter().filter(|line| *line == "frame").count(), 1);
    runtime.block_on(finish(LONG)).unwrap();
}

#[tokio::test]
async fn polled_after_its_end_it_panics_and_stays_ended() {
    let mut running: Running<u32> = Box::pin(run(async { 7 }));
    while poll_once(&mut running).await.is_pending() {}
    for _ in 0..2 {
        let polled =
            catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
        assert!(polled.is_err());
    }
    drop(running);
    finish(LONG).await.unwrap();
}

/// It is a task of the outer chain, which waits for it; outside of that chain nobody may await it.
#[tokio::test(start_paused = true)]
async fn a_nested_run_that_is_sent_out_of_its_chain_is_waited_for_until_it_is_dropped() {
    let log = Log::default();
    let (inside, out) = (log.clone(), Arc::new(Mutex::new(None)));
    let sent = out.clone();
    let mut outer: Running<()> = Box::pin(run(async move {
        let mut inner: Running<()> = Box::pin(run(async move {
            using(Transaction(inside), async |_| forever().await).await;
        }));
        assert!(poll_once(&mut inner).await.is_pending());
        checkpoint().await;
        *sent.lock().unwrap() = Some(inner);
    }));
    for _ in 0..5 {
        assert!(poll_once(&mut outer).await.is_pending(), "the inner one has not ended");
    }
    let mut inner = out.lock().unwrap().take().unwrap();
    let polled =
        catch_unwind(AssertUnwindSafe(|| inner.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
    assert!(!matches!(polled, Ok(Poll::Ready(_))));
    drop(inner);
    assert_eq!(outer.await, Ok(()));
    assert_eq!(log.lines(), ["rollback"]);
}

/// Where tools that look for leaks find it.
static FORGOTTEN: Mutex<Vec<Running<()>>> = Mutex::new(Vec::new());

#[tokio::test(start_paused = true)]
async fn forgotten_it_stays_and_finish_names_it_when_its_time_is_over() {
    let log = Log::default();
    let inside = log.clone();
    let never = run(async move { using(Transaction(inside), async |_| forever().await).await });
    let mut running: Running<()> = Box::pin(never.named("forgotten"));
    assert!(poll_once(&mut running).await.is_pending());
    FORGOTTEN.lock().unwrap().push(running);
    let left = finish(Duration::from_secs(1)).await.unwrap_err().to_string();
    assert!(left.contains("forgotten"), "{left}");
    assert_eq!(log.lines(), [""; 0], "nobody polls its clean-up");
}
