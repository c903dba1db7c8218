//! How a future that waits honours a stop: when it is first polled, even if it would not have to wait, and
//! while it waits.

use core::future::poll_fn;
use core::panic::Location;
use core::task::{Context, Poll};

use crate::frame::{Frame, StopWatch, budget};

/// The part of every future that waits: the location of the call, and its registration for a stop.
#[derive(Debug)]
pub struct Pause {
    location: &'static Location<'static>,
    watch: StopWatch,
}

impl Pause {
    #[track_caller]
    #[inline]
    /// Creates one with the location of the caller as the wait location.
    pub const fn here() -> Self {
        Self { location: Location::caller(), watch: StopWatch::new() }
    }

    /// Creates one with `location` as the wait location.
    #[inline]
    pub const fn at(location: &'static Location<'static>) -> Self {
        Self { location, watch: StopWatch::new() }
    }

    /// Returns the location of the call.
    pub fn place(&self) -> &'static Location<'static> {
        self.location
    }

    /// Ends as stopped if a stop was requested by now. Returns true if so: the caller returns `Pending` now.
    ///
    /// Checks the present state instead of that at the beginning of the poll: a loop of calls none of which
    /// has to wait is a single poll, and would not see a request that is made meanwhile.
    #[inline]
    pub fn is_stopped() -> bool {
        Frame::current(|frame| {
            frame.is_some_and(|frame| {
                let requested = frame.is_asked_to_stop() || frame.stop_reason().is_some();
                if requested {
                    frame.set_stopped();
                }
                requested
            })
        })
    }

    /// Ends as stopped if a stop was requested when the poll began. Returns true if so: the caller returns
    /// `Pending` now. Enough for a future that is about to wait, because a later request wakes the task.
    #[inline]
    pub fn was_stopped() -> bool {
        Frame::current(|frame| frame.is_some_and(Frame::honour_stop))
    }

    /// Ends as stopped if a stop was requested by now; else completes, at once if the task has budget left.
    pub async fn stop_here() {
        poll_fn(|cx| {
            if Self::is_stopped() || !budget::may_proceed(cx) {
                return Poll::Pending;
            }
            budget::spend();
            Poll::Ready(())
        })
        .await;
    }

    /// Registers the caller, a future that returns `Pending` now, to be polled again when a stop is
    /// requested.
    #[inline]
    pub fn wait(&mut self, cx: &Context<'_>) {
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.waits_at(self.location);
                self.watch.watch(frame, cx);
            }
        });
    }
}
