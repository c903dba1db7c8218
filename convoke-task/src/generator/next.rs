//! The future of the next value of a generator.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_core::Stream;

use super::{Generator, GeneratorOutput};

/// Future of [`Generator::next`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Next<'a, T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    generator: &'a mut Generator<T, F>,
}

impl<'a, T, F> Next<'a, T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    pub(super) fn new(generator: &'a mut Generator<T, F>) -> Self {
        Self { generator }
    }
}

impl<T, F> Future for Next<'_, T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    type Output = Option<<F::Output as GeneratorOutput<T>>::Item>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.generator).poll_next(cx)
    }
}

impl<T, F> fmt::Debug for Next<'_, T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Next").field(&self.generator).finish()
    }
}
