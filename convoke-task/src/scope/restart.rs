//! The future of a child that is restarted when it fails.

use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use convoke_core::Panic;
use pin_project_lite::pin_project;

use super::caught::{AttemptEnd, Caught, poll_caught};
use super::failure::{ChildFailure, ChildOrigin, FailureKind};
use super::options::{Naming, Restart};
use crate::schedule::{Pause, Waits, pause};

/// Function that hears of the failures after which a child is restarted.
pub(super) type ReportRestart<E> = Box<dyn FnMut(&ChildFailure<E>) + Send>;

pin_project! {
    /// A child that is restarted when it fails: calls `make` for each attempt, and pauses between two of them.
    /// It ends as the last attempt does.
    pub struct Restarting<M, F, E> {
        // At most one of the two is there. Neither is before an attempt.
        #[pin]
        running: Caught<F>,
        #[pin]
        pausing: Option<Pause>,
        is_running: bool,
        attempt: u32,
        make: M,
        waits: Waits,
        report: Option<ReportRestart<E>>,
        origin: ChildOrigin,
    }
}

impl<M, F, E> Restarting<M, F, E>
where
    M: FnMut() -> F,
    F: Future,
{
    pub(super) fn new<N: Naming>(
        restart: Restart<E>,
        make: M,
        name: &N,
        location: &'static Location<'static>,
    ) -> Self {
        let Restart { schedule, report } = restart;
        Self {
            running: Caught::empty(),
            pausing: None,
            is_running: false,
            attempt: 1,
            make,
            waits: schedule.waits(),
            report,
            origin: ChildOrigin { name: name.get().cloned(), location },
        }
    }

    /// Polls the child. Returns the panic of the last attempt. Panics only with the panic of the report, or of
    /// an error that is dropped after it.
    pub(super) fn poll_attempts<V>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<AttemptEnd<Result<V, E>>>
    where
        F: Future<Output = Result<V, E>>,
    {
        let mut this = self.project();
        loop {
            if let Some(pausing) = this.pausing.as_mut().as_pin_mut() {
                ready!(pausing.poll(cx));
                this.pausing.set(None);
            }
            let result = if *this.is_running {
                ready!(this.running.as_mut().poll(cx, poll_caught)).result
            } else {
                match Panic::catch(&mut *this.make) {
                    Ok(future) => {
                        this.running.as_mut().set(future);
                        *this.is_running = true;
                        continue;
                    }
                    // A panic of `make` is a failure of the attempt.
                    Err(panic) => Err(panic),
                }
            };
            *this.is_running = false;
            let kind = match result {
                Ok(Err(error)) => FailureKind::Error(error),
                Err(panic) => FailureKind::Panicked(panic),
                done => return Poll::Ready(AttemptEnd { result: done, attempt: *this.attempt }),
            };
            let Some(wait) = this.waits.next() else {
                let result = match kind {
                    FailureKind::Error(error) => Ok(Err(error)),
                    FailureKind::Panicked(panic) => Err(panic),
                };
                return Poll::Ready(AttemptEnd { result, attempt: *this.attempt });
            };
            let failure = this.origin.failure(*this.attempt, kind);
            if let Some(report) = this.report {
                report(&failure);
            }
            drop(failure);
            // Saturating: a child that fails at once can reach the limit within a day.
            *this.attempt = this.attempt.saturating_add(1);
            this.pausing.set(Some(pause(wait)));
        }
    }
}

impl<M, F, V, E> Future for Restarting<M, F, E>
where
    M: FnMut() -> F,
    F: Future<Output = Result<V, E>>,
{
    type Output = Result<V, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<V, E>> {
        match ready!(self.poll_attempts(cx)).result {
            Ok(result) => Poll::Ready(result),
            Err(panic) => panic.resume(),
        }
    }
}
