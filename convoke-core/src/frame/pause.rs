//! How every call in this folder hears of a stop: when it begins, also if it would not have to wait, and while it
//! waits.

use core::future::poll_fn;
use core::panic::Location;
use core::task::{Context, Poll};

use crate::frame::{Frame, StopWatch};

/// Kept by every future here: where it was called, and how it hears of a stop.
#[derive(Debug)]
pub struct Pause {
    place: &'static Location<'static>,
    watch: StopWatch,
}

impl Pause {
    #[track_caller]
    #[inline]
    /// Records the caller as the place of the wait.
    pub const fn here() -> Self {
        Self { place: Location::caller(), watch: StopWatch::new() }
    }

    /// Where it was called.
    pub fn place(&self) -> &'static Location<'static> {
        self.place
    }

    /// Ends by the stopped door if a stop was asked for, by this moment: a loop of calls none of which has to wait is
    /// one poll, and what the task knew when that began is not enough. True if so: the caller returns `Pending` now.
    #[inline]
    pub fn is_stopped() -> bool {
        Frame::current(|frame| {
            frame.is_some_and(|frame| {
                let asked = frame.is_asked_to_stop() || frame.stop_reason().is_some();
                if asked {
                    frame.set_stopped();
                }
                asked
            })
        })
    }

    /// The same as of the beginning of the poll: enough for who is about to wait, because a stop that comes later wakes
    /// the task.
    #[inline]
    pub fn was_stopped() -> bool {
        Frame::current(|frame| frame.is_some_and(Frame::honour_stop))
    }

    /// Ends by the stopped door if a stop was asked for; else goes on.
    pub async fn stop_here() {
        poll_fn(|_| if Self::is_stopped() { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    /// The caller returns `Pending` now, and is polled again when a stop is asked for.
    #[inline]
    pub fn wait(&mut self, cx: &Context<'_>) {
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.waits_at(self.place);
                self.watch.watch(frame, cx);
            }
        });
    }
}
