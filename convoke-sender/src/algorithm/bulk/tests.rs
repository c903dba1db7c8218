//! Unit tests of `bulk`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::prelude::*;
use crate::testing::{ByHand, Connected, DropCount, Gate, all_outcomes, stopped_env};
use convoke_core::raw::Runnable;

/// A queue run by hand that claims to have this much parallelism.
#[derive(Clone, PartialEq)]
struct Wide(ByHand, usize);

impl Executor for Wide {
    fn post(&self, runnable: Runnable) {
        self.0.post(runnable);
    }

    fn parallelism(&self) -> usize {
        self.1
    }
}

fn hits(count: usize) -> Vec<AtomicUsize> {
    (0..count).map(|_| AtomicUsize::new(0)).collect()
}

fn hit(index: usize, hits: &impl AsRef<[AtomicUsize]>) {
    hits.as_ref()[index].fetch_add(1, Relaxed);
}

fn each_once(outcome: Outcome<Vec<AtomicUsize>>) -> bool {
    outcome.unwrap().into_iter().all(|hits| hits.into_inner() == 1)
}

#[test]
fn calls_each_index_once_one_after_another_where_nothing_is_wider() {
    for count in [0, 1, 2, 100, 1000] {
        assert!(each_once(Connected::new(just(hits(count)).bulk(count, hit)).outcome()));
    }
    let order = std::sync::Mutex::new(Vec::new());
    let sender = just(()).bulk(5, |index, ()| order.lock().unwrap().push(index));
    assert!(Connected::new(sender).wait().is_value());
    assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3, 4]);
}

#[test]
fn spreads_over_the_executor_and_waits_for_all_helpers() {
    let wide = Wide(ByHand::new(), 3);
    let env = Env::from(wide.clone());
    let running = Connected::with_env(just(hits(100)).bulk(100, hit), env).start();
    assert_eq!(wide.0.len(), 2, "the third runner is the thread that starts it");
    assert!(wide.0.run_one());
    assert!(!running.is_complete());
    assert!(wide.0.run_one());
    assert!(each_once(running.outcome()));
}

#[test]
fn helpers_that_are_dropped_unrun_just_leave() {
    let wide = Wide(ByHand::new(), 4);
    let running = Connected::with_env(just(hits(100)).bulk(100, hit), Env::from(wide.clone())).start();
    wide.0.drop_all();
    assert!(each_once(running.outcome()));
}

#[test]
fn there_are_no_more_runners_than_calls() {
    let wide = Wide(ByHand::new(), 8);
    let running = Connected::with_env(just(hits(2)).bulk(2, hit), Env::from(wide.clone())).start();
    assert_eq!(wide.0.run_all(), 1);
    assert!(each_once(running.outcome()));
}

#[test]
fn runs_where_the_sender_before_completes_and_not_where_it_was_started() {
    let (here, there) = (Wide(ByHand::new(), 2), Wide(ByHand::new(), 3));
    let sender = schedule(&there).then(|()| hits(30)).bulk(30, hit);
    let running = Connected::with_env(sender, Env::from(here.clone())).start();
    assert_eq!(there.0.run_all(), 3);
    assert!(here.0.is_empty());
    assert!(each_once(running.outcome()));
}

#[test]
fn other_doors_pass_by_the_calls() {
    for (outcome, sender) in all_outcomes(1, "e") {
        let calls = AtomicUsize::new(0);
        let expected_calls = if outcome.is_value() { 3 } else { 0 };
        let bulk = sender.bulk(3, |_, _| _ = calls.fetch_add(1, Relaxed));
        assert_eq!(Connected::new(bulk).wait(), outcome);
        assert_eq!(calls.into_inner(), expected_calls);
    }
}

#[test]
fn a_panic_ends_the_calls_and_is_the_outcome() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let wide = Wide(ByHand::new(), 2);
    let sender = just(()).bulk(160, move |_, ()| {
        counted.fetch_add(1, Relaxed);
        panic!("boom")
    });
    let running = Connected::with_env(sender, Env::from(wide.clone())).start();
    assert!(!running.is_complete());
    wide.0.run_all();
    assert_eq!(running.outcome(), Outcome::Panicked(Panic::new("boom")));
    assert_eq!(calls.load(Relaxed), 1);
}

#[test]
fn a_stop_ends_the_calls_unless_all_were_made() {
    let sender = just(()).bulk(3, |_, ()| unreachable!("stopped before"));
    assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Stopped);
    let calls_with_a_stop_in_call = |stopping: usize| {
        let (source, calls) = (StopSource::new(), AtomicUsize::new(0));
        let sender = just(()).bulk(8, |index, ()| {
            calls.fetch_add(1, Relaxed);
            if index == stopping {
                source.request_stop(StopReason::Requested);
            }
        });
        let outcome = Connected::stoppable(sender, &source).wait();
        (outcome, calls.into_inner())
    };
    assert_eq!(calls_with_a_stop_in_call(2), (Outcome::Stopped, 3));
    assert_eq!(calls_with_a_stop_in_call(7), (Outcome::Value(()), 8));
}

#[test]
fn a_stop_reaches_the_sender_before() {
    let (source, gate) = (StopSource::new(), Gate::<u8>::new());
    let running = Connected::stoppable(gate.sender().bulk(3, |_, _| ()), &source).start();
    source.request_stop(StopReason::Requested);
    assert_eq!(running.outcome(), Outcome::Stopped);
}

#[test]
fn dropping_it_unstarted_calls_nothing() {
    let count = DropCount::new();
    let token = count.token();
    drop(Connected::new(just(1).bulk(3, move |_, _| unreachable!("{token:?}"))));
    assert_eq!(count.dropped(), 1);
}
