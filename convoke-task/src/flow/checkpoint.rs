//! `checkpoint()`: lets other work run, and stops here if a stop was requested.

use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::Frame;

/// Lets other work of the executor run, and stops here if a stop was requested: for loops that compute for
/// long, and for loops whose awaits all happen to be ready.
///
/// Use this if a loop computes for long without an `await`. Use [`reschedule`](crate::reschedule()) to move to
/// another executor.
///
/// - *Completes with* `()`, or stopped.
/// - *If dropped*, nothing happens.
/// - *Runs on* the task's executor, behind what is queued there.
///
/// ```
/// use convoke::prelude::*;
///
/// let outcome = block_on(async {
///     let mut sum = 0_u64;
///     for chunk in 0..10 {
///         sum += (chunk * 100..(chunk + 1) * 100).sum::<u64>();
///         checkpoint().await;
///     }
///     sum
/// });
/// assert_eq!(outcome, Outcome::Value(499_500));
/// ```
#[doc(alias = "yield_now")]
#[track_caller]
pub fn checkpoint() -> Checkpoint {
    Checkpoint { location: Location::caller(), waited: false }
}

/// The future of [`checkpoint()`].
#[derive(Debug)]
#[must_use = "futures do nothing until they are awaited"]
pub struct Checkpoint {
    location: &'static Location<'static>,
    waited: bool,
}

impl Future for Checkpoint {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Frame::current(|frame| {
            if let Some(frame) = frame {
                if !self.waited {
                    frame.waits_at(self.location);
                }
                if frame.honour_stop() {
                    return Poll::Pending;
                }
            }
            if self.waited {
                return Poll::Ready(());
            }
            self.waited = true;
            match frame {
                Some(frame) => frame.wake_task(cx.waker()),
                None => cx.waker().wake_by_ref(),
            }
            Poll::Pending
        })
    }
}
