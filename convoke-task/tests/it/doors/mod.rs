//! Branches that end with a chosen outcome, and a ledger of the branches that have begun, were asked to stop,
//! and have cleaned up. For the tests of concurrency inside one task.
#![allow(dead_code, reason = "each test uses its part")]

use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex};

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::stopped;

/// Outcome of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Value,
    Error,
    Stopped,
    Panic,
}

/// Ends with the outcome of `door`, after a number of checkpoints.
pub(crate) async fn ends_by(door: Door, turns: usize, index: usize) -> Result<usize, String> {
    for _ in 0..turns {
        checkpoint().await;
    }
    match door {
        Door::Value => Ok(index),
        Door::Error => Err(format!("error {index}")),
        Door::Stopped => stopped().await,
        Door::Panic => panic!("panic {index}"),
    }
}

/// Counts of the branches that have begun and that have cleaned up.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    begun: usize,
    cleaned_up: usize,
    reasons: Vec<Option<StopReason>>,
}

impl Ledger {
    /// Waits until it is asked to stop, cleans up, which takes several checkpoints, and stops.
    pub(crate) async fn waits<T>(self) -> T {
        self.0.lock().unwrap().begun += 1;
        let caught = catch_stopped(async { never::<()>().await }).await;
        shield(async {
            for _ in 0..3 {
                checkpoint().await;
            }
        })
        .await;
        self.cleaned_up(caught.unwrap_err().reason());
        stopped().await
    }

    fn cleaned_up(&self, reason: Option<StopReason>) {
        let mut seen = self.0.lock().unwrap();
        seen.cleaned_up += 1;
        seen.reasons.push(reason);
    }

    /// Asserts that all branches that have begun have cleaned up.
    pub(crate) fn assert_drained(&self, story: &str) {
        let seen = self.0.lock().unwrap();
        assert_eq!(seen.begun, seen.cleaned_up, "begun and cleaned up: {story}");
    }

    /// Returns the number of branches that have begun.
    pub(crate) fn begun(&self) -> usize {
        self.0.lock().unwrap().begun
    }

    /// Asserts that all branches were asked to stop with this reason.
    pub(crate) fn assert_reasons(&self, reason: StopReason) {
        let seen = self.0.lock().unwrap();
        assert!(seen.reasons.iter().all(|seen| *seen == Some(reason)), "{:?}", seen.reasons);
    }
}

/// Runs a future as a task. A panic is an outcome.
pub(crate) fn outcome_of<F: Future<Output: Send> + Send>(future: F) -> Outcome<F::Output> {
    match Panic::catch(|| sync_wait(task(future))) {
        Ok(outcome) => outcome,
        Err(panic) => Outcome::Panicked(panic),
    }
}

/// Asserts that two outcomes are equal. Panics are equal if their messages are.
pub(crate) fn assert_same<T: Debug + PartialEq>(ended: Outcome<T>, expected: &Outcome<T>, story: &str) {
    match (&ended, expected) {
        (Outcome::Panicked(a), Outcome::Panicked(b)) => assert_eq!(a.message(), b.message(), "{story}"),
        (a, b) => assert_eq!(a, b, "{story}"),
    }
}
