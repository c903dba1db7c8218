//! Branches that end by a door of one's choice, and a ledger of those that were asked to stop: who has begun, and who has
//! cleaned up. Shared by the tests of what runs together in one task.
#![allow(dead_code, reason = "each test uses its part")]

use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex};

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::stopped;

/// How a branch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Value,
    Error,
    Stopped,
    Panic,
}

/// Ends by a door, after so many turns.
pub(crate) async fn ends_by(door: Door, turns: usize, place: usize) -> Result<usize, String> {
    for _ in 0..turns {
        checkpoint().await;
    }
    match door {
        Door::Value => Ok(place),
        Door::Error => Err(format!("error {place}")),
        Door::Stopped => stopped().await,
        Door::Panic => panic!("panic {place}"),
    }
}

/// Who has begun, and who has cleaned up.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    begun: usize,
    cleaned_up: usize,
    reasons: Vec<Option<StopReason>>,
}

impl Ledger {
    /// Waits until it is asked to stop, then cleans up, which takes several turns; then it is stopped.
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

    /// All that have begun have cleaned up.
    pub(crate) fn assert_drained(&self, story: &str) {
        let seen = self.0.lock().unwrap();
        assert_eq!(seen.begun, seen.cleaned_up, "begun and cleaned up: {story}");
    }

    /// How many have begun.
    pub(crate) fn begun(&self) -> usize {
        self.0.lock().unwrap().begun
    }

    /// All were asked for this reason.
    pub(crate) fn assert_reasons(&self, reason: StopReason) {
        let seen = self.0.lock().unwrap();
        assert!(seen.reasons.iter().all(|seen| *seen == Some(reason)), "{:?}", seen.reasons);
    }
}

/// Runs it as a task; a panic is an outcome.
pub(crate) fn outcome_of<F: Future<Output: Send> + Send>(future: F) -> Outcome<F::Output> {
    match Panic::catch(|| sync_wait(task(future))) {
        Ok(outcome) => outcome,
        Err(panic) => Outcome::Panicked(panic),
    }
}

/// Panics are the same if they say the same.
pub(crate) fn assert_same<T: Debug + PartialEq>(ended: Outcome<T>, expected: &Outcome<T>, story: &str) {
    match (&ended, expected) {
        (Outcome::Panicked(a), Outcome::Panicked(b)) => assert_eq!(a.message(), b.message(), "{story}"),
        (a, b) => assert_eq!(a, b, "{story}"),
    }
}
