//! Closing a generator: its body is asked to stop, and awaited.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::StopReason;
use convoke_core::raw::{Frame, budget};

use super::{Advanced, Generator, GeneratorOutput, Stage};
use crate::cleanup::{AsyncClose, CleanupOutput, Exit};

/// Future of [`Generator::close`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Close<T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    generator: Generator<T, F>,
}

impl<T, F> Close<T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    pub(super) fn new(generator: Generator<T, F>) -> Self {
        Self { generator }
    }
}

impl<T, F> Future for Close<T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    type Output = <F::Output as GeneratorOutput<T>>::Closed;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let generator = &mut self.generator;
        if matches!(generator.stage, Stage::New | Stage::Panicked) {
            generator.body = None;
        }
        // Later polls continue what was asked to stop.
        let first = generator.body.as_ref().is_none_or(|body| body.exchange().region.stop_reason().is_none());
        if first && !budget::may_proceed(cx) {
            return generator.yields();
        }
        let Some(body) = &generator.body else {
            budget::spend();
            return Poll::Ready(match generator.returned.take() {
                Some(output) => output.into_closed(),
                None => F::Output::closed(),
            });
        };
        // After this request another one, from outside, changes nothing. So no shield is needed.
        body.exchange().region.request_stop(StopReason::Abandoned);
        match generator.advance(cx) {
            Advanced::Returned(output) => {
                budget::spend();
                Poll::Ready(output.into_closed())
            }
            Advanced::Stopped => {
                budget::spend();
                Poll::Ready(F::Output::closed())
            }
            Advanced::Waits => {
                Frame::hold_current();
                Poll::Pending
            }
            Advanced::Yielded(value) => {
                // The body yields in a shield. The value is dropped, and other tasks run before the next poll.
                drop(value);
                cx.waker().wake_by_ref();
                Frame::hold_current();
                Poll::Pending
            }
        }
    }
}

/// Asks the body to stop and awaits it, for every exit.
#[diagnostic::do_not_recommend]
impl<T, F> AsyncClose for Generator<T, F>
where
    F: Future<Output: GeneratorOutput<T, Closed: CleanupOutput> + Send> + Send + ?Sized,
{
    type Error = <<F::Output as GeneratorOutput<T>>::Closed as CleanupOutput>::Error;

    async fn close(self, _: Exit) -> Result<(), Self::Error> {
        Close::new(self).await.into_result()
    }
}

impl<T, F> fmt::Debug for Close<T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Close").field(&self.generator).finish()
    }
}
