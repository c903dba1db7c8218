//! What the programs of these tests are made of.

use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use convoke::inspect::{Report, Watcher};

/// A watcher, and a clock for it.
pub(crate) struct Looking {
    watcher: Watcher,
    now: Instant,
}

impl Looking {
    pub(crate) fn new(watcher: Watcher) -> Self {
        Self { watcher, now: Instant::now() }
    }

    /// What is wrong after so many more seconds.
    pub(crate) fn after(&mut self, seconds: u64) -> Vec<Report> {
        self.now += Duration::from_secs(seconds);
        self.watcher.look(self.now)
    }

    /// What is wrong at once.
    pub(crate) fn now(&mut self) -> Vec<Report> {
        self.after(1)
    }
}

/// Polls both until one has ended, and leaves the other as it is: what `select!` of other crates does with borrowed futures.
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

/// The line of this call.
#[track_caller]
pub(crate) fn line() -> u32 {
    Location::caller().line()
}

/// The one report there is.
pub(crate) fn only(reports: Vec<Report>) -> Report {
    let [report] = <[Report; 1]>::try_from(reports).expect("one report");
    report
}
