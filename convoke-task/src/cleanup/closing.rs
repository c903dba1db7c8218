//! A running clean-up, in a region of its own: its stop or panic does not reach the task that awaits it.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{OutOfLine, Polled};
use convoke_core::{Panic, StopReason};
use pin_project_lite::pin_project;

use super::cleanup_output::{CleanupError, CleanupOutput};
use super::grace::Grace;
use super::problem::ProblemKind;
use crate::region::Region;

/// The end of a clean-up.
#[derive(Debug)]
pub(super) enum Closed<E> {
    Well,
    Failed(E),
    Stopped(Option<StopReason>),
    Panicked(Panic),
}

impl<E: core::fmt::Display> Closed<E> {
    /// Returns what there is to report.
    pub(super) fn problem(&self) -> Option<ProblemKind<'_>> {
        match self {
            Self::Well => None,
            Self::Failed(error) => Some(ProblemKind::Failed(error)),
            Self::Stopped(reason) => Some(ProblemKind::Stopped(*reason)),
            Self::Panicked(panic) => Some(ProblemKind::Panicked(panic)),
        }
    }
}

pin_project! {
    /// A running clean-up. It completes with its end, and neither stops its task nor panics.
    pub(super) struct Closing<C> {
        #[pin]
        clean_up: OutOfLine<Option<C>>,
        region: Region,
        grace: OutOfLine<Grace>,
    }
}

impl<C> Closing<C> {
    /// Creates a clean-up that is shielded from stop requests, and asked to stop when its grace period is over.
    pub(super) fn shielded(clean_up: C, grace: Grace) -> Self {
        let region = Region::shielded();
        let region = match grace.deadline() {
            Some(deadline) => region.with_deadline(deadline),
            None => region,
        };
        Self { clean_up: OutOfLine::new(Some(clean_up)), region, grace: OutOfLine::new(grace) }
    }

    /// Creates one of several clean-ups inside a shielded one, with which it is asked to stop.
    pub(super) fn within(clean_up: C) -> Self {
        Self {
            clean_up: OutOfLine::new(Some(clean_up)),
            region: Region::new(),
            grace: OutOfLine::new(Grace::None),
        }
    }
}

impl<C: Future<Output: CleanupOutput>> Future for Closing<C> {
    type Output = Closed<CleanupError<C>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut slot = this.clean_up.as_pin();
        let closed = loop {
            let Some(clean_up) = slot.as_mut().as_pin_mut() else { panic!("polled after completion") };
            match Panic::catch(|| this.region.poll(clean_up, cx)) {
                Ok(Polled::Pending) if this.grace.is_over(this.region, cx) => {}
                Ok(Polled::Pending) => return Poll::Pending,
                Ok(Polled::Ready(output)) => match output.into_result() {
                    Ok(()) => break Closed::Well,
                    Err(error) => break Closed::Failed(error),
                },
                Ok(Polled::Stopped) => break Closed::Stopped(this.region.stop_reason()),
                Err(panic) => break Closed::Panicked(panic),
            }
        };
        let region = &*this.region;
        let dropped = Panic::catch(|| region.within(|| slot.set(None)));
        Poll::Ready(match (closed, dropped) {
            (Closed::Panicked(panic), _) | (_, Err(panic)) => Closed::Panicked(panic),
            (closed, Ok(())) => closed,
        })
    }
}
