//! Where the items of concurrent work come from: an iterator, or a stream.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::Polled;
use futures_core::Stream;

use crate::region::{BodyMark, Region};

/// Items, one after the other: an iterator or what becomes one, or a stream. `K` says which; it is never written down.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an iterator nor a stream that may be moved",
    label = "items come from what is an `IntoIterator`, or a `Stream` that is `Unpin`",
    note = "a stream that is not `Unpin` is pinned first: `Box::pin(stream)`, or `std::pin::pin!(stream)`"
)]
pub trait Source<K> {
    /// What it is made of.
    type Item;
    /// The same, begun.
    type Items: Items<Item = Self::Item>;

    /// Begins it.
    fn begin(self) -> Self::Items;
}

/// A [`Source`] that has begun.
pub trait Items {
    /// What it is made of.
    type Item;

    /// The next of them.
    #[doc(hidden)]
    fn poll_next(&mut self, region: &Region, cx: &mut Context<'_>) -> Polled<Option<Self::Item>>;
}

/// The kind of sources that are iterators.
#[derive(Debug)]
pub struct FromIterator;

/// The kind of sources that are streams.
#[derive(Debug)]
pub struct FromStream;

/// Items of an iterator.
pub struct Iterated<I>(I);

/// Items of a stream.
pub struct Streamed<S> {
    stream: S,
    mark: BodyMark,
}

#[diagnostic::do_not_recommend]
impl<I: IntoIterator> Source<FromIterator> for I {
    type Item = I::Item;
    type Items = Iterated<I::IntoIter>;

    fn begin(self) -> Self::Items {
        Iterated(self.into_iter())
    }
}

#[diagnostic::do_not_recommend]
impl<S: Stream + Unpin> Source<FromStream> for S {
    type Item = S::Item;
    type Items = Streamed<S>;

    fn begin(self) -> Self::Items {
        Streamed { stream: self, mark: BodyMark::default() }
    }
}

impl<I: Iterator> Items for Iterated<I> {
    type Item = I::Item;

    #[inline]
    fn poll_next(&mut self, _: &Region, _: &mut Context<'_>) -> Polled<Option<I::Item>> {
        Polled::Ready(self.0.next())
    }
}

impl<S: Stream + Unpin> Items for Streamed<S> {
    type Item = S::Item;

    fn poll_next(&mut self, region: &Region, cx: &mut Context<'_>) -> Polled<Option<S::Item>> {
        let next = Next(&mut self.stream);
        region.poll_one(core::pin::pin!(next), &self.mark, cx.waker(), false)
    }
}

/// One more item of a stream.
struct Next<'a, S>(&'a mut S);

impl<S: Stream + Unpin> Future for Next<'_, S> {
    type Output = Option<S::Item>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.0).poll_next(cx)
    }
}

impl<I> fmt::Debug for Iterated<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iterated").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Streamed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed").finish_non_exhaustive()
    }
}
