//! Building blocks of the programs in these tests.

use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use convoke::inspect::{Finding, Watcher};

/// A watcher with its own clock.
pub(crate) struct Checker {
    watcher: Watcher,
    now: Instant,
}

impl Checker {
    pub(crate) fn new(watcher: Watcher) -> Self {
        Self { watcher, now: Instant::now() }
    }

    /// Returns the reports after `seconds` more seconds.
    pub(crate) fn after(&mut self, seconds: u64) -> Vec<Finding> {
        self.now += Duration::from_secs(seconds);
        self.watcher.check(self.now)
    }

    /// Returns the reports after one second, less than any deadlock limit.
    pub(crate) fn now(&mut self) -> Vec<Finding> {
        self.after(1)
    }
}

/// Polls both futures until one has completed, and leaves the other as it is: what `select!` of other crates
/// does with borrowed futures.
pub(crate) async fn first_of(
    mut one: Pin<&mut impl Future<Output: Sized>>,
    mut other: Pin<&mut impl Future<Output: Sized>>,
) {
    poll_fn(|cx| {
        let ended = one.as_mut().poll(cx).is_ready() || other.as_mut().poll(cx).is_ready();
        if ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Returns the line of this call.
#[track_caller]
pub(crate) fn line() -> u32 {
    Location::caller().line()
}

/// Returns the only report.
pub(crate) fn only(reports: Vec<Finding>) -> Finding {
    let [report] = <[Finding; 1]>::try_from(reports).expect("one report");
    report
}
