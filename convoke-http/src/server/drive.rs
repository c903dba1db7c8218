//! Runs a connection of hyper until it ends, or until it has nothing to do: begins its drain, and ends it when it is idle or
//! too slow.

use core::future::{Future, IntoFuture, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;
use std::time::Instant;

use convoke_core::UntilStopped;
use convoke_exec::time::{Sleeping, sleep_until};

use super::activity::{Activity, Next, Over};
use crate::limits::Limits;

/// The time that a connection may take to end after it was asked to because it was idle. A peer that is gone does not
/// answer a GOAWAY.
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// A connection of hyper.
pub(super) trait HyperConnection: Future<Output = hyper::Result<()>> + Unpin {
    /// Begins to end the connection: it takes no more requests, and ends when it has none.
    fn drain(self: Pin<&mut Self>);
}

/// How a connection has ended.
pub(super) enum Ended {
    /// By itself.
    Hyper(hyper::Result<()>),
    /// The head of a request was too slow. The connection is still open.
    SlowHead,
    /// It was asked to end because it was idle, and did not end in time. The connection is still open.
    Unresponsive,
    /// It has nothing to do, by HTTP/1. The connection is still open.
    Dormant,
}

/// Runs a connection. When a stop is requested by `stop`, the connection is drained.
pub(super) async fn drive<C: HyperConnection>(
    connection: &mut C,
    stop: &mut UntilStopped,
    activity: &Activity,
    limits: &Limits,
) -> Ended {
    let mut is_draining = false;
    let mut patience = pin!(Patience { timer: None, armed: None, closing: None });
    poll_fn(|cx| {
        if !is_draining && stop.poll_requested(cx).is_ready() {
            is_draining = true;
            Pin::new(&mut *connection).drain();
        }
        loop {
            if let Poll::Ready(result) = Pin::new(&mut *connection).poll(cx) {
                return Poll::Ready(Ended::Hyper(result));
            }
            match patience.as_mut().poll(activity, limits, is_draining, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(ended)) => return Poll::Ready(ended),
                Poll::Ready(None) => {
                    is_draining = true;
                    Pin::new(&mut *connection).drain();
                }
            }
        }
    })
    .await
}

pin_project_lite::pin_project! {
    /// Waits until a connection without requests has waited for too long.
    struct Patience {
        // Set to the earliest time that it may have to fire at, and not moved when a request begins or ends: a busy
        // connection does not touch it.
        #[pin]
        timer: Option<Sleeping>,
        armed: Option<Instant>,
        // The end of the time for closing, once the connection was idle.
        closing: Option<Instant>,
    }
}

impl Patience {
    /// Completes with the way in which the connection has ended; with `None` if it was idle and is to be drained.
    fn poll(
        mut self: Pin<&mut Self>,
        activity: &Activity,
        limits: &Limits,
        is_draining: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Ended>> {
        loop {
            let mut this = self.as_mut().project();
            let (deadline, over) = match activity.next(limits, is_draining, cx) {
                None | Some(Next::Works) => {
                    *this.closing = None;
                    return Poll::Pending;
                }
                Some(Next::Sleeps) => return Poll::Ready(Some(Ended::Dormant)),
                Some(Next::Until(deadline, over)) => (this.closing.unwrap_or(deadline), over),
            };
            if this.armed.is_none_or(|armed| armed > deadline) {
                *this.armed = Some(deadline);
                match this.timer.as_mut().as_pin_mut() {
                    Some(timer) => timer.reset(deadline),
                    None => this.timer.set(Some(sleep_until(deadline).into_future())),
                }
            }
            let (Some(timer), Some(armed)) = (this.timer.as_pin_mut(), *this.armed) else {
                return Poll::Pending;
            };
            if timer.poll(cx).is_pending() {
                return Poll::Pending;
            }
            *this.armed = None;
            if armed < deadline {
                continue;
            }
            if this.closing.is_some() {
                return Poll::Ready(Some(Ended::Unresponsive));
            }
            return Poll::Ready(match over {
                Over::Head => Some(Ended::SlowHead),
                Over::Busy => Some(Ended::Dormant),
                Over::Idle => {
                    *this.closing = deadline.checked_add(CLOSE_TIME);
                    None
                }
            });
        }
    }
}
