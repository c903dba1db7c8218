//! `forever()`: waits until a stop is requested.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Frame, StopWatch, outside_a_task};

use super::no_return::NoReturn;

/// Waits until a stop is requested, and ends as stopped: for the body of a scope whose children do the work.
///
/// - *Completes with* nothing: it never returns a value. Its output type is inferred.
/// - *If dropped*, nothing happens.
/// - *Runs on* the task's executor.
/// - *Panics* outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::forever;
///
/// let outcome: Outcome<Result<(), &str>> = block_on(async {
///     scope(async |s| {
///         s.spawn(async { Err("the disk is full") });
///         forever().await
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(Err("the disk is full")));
/// ```
#[track_caller]
pub fn forever() -> Forever {
    Forever { location: Location::caller(), watch: StopWatch::new() }
}

/// The future of [`forever()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Forever {
    location: &'static Location<'static>,
    watch: StopWatch,
}

impl Future for Forever {
    type Output = NoReturn;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NoReturn> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("`forever()`") };
            if !frame.honour_stop() {
                frame.waits_at(self.location);
                self.watch.watch(frame, cx);
            }
            Poll::Pending
        })
    }
}

impl fmt::Debug for Forever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forever").field("at", &self.location).finish()
    }
}
