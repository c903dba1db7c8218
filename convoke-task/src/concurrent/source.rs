//! The source of the items of concurrent work: an iterator, or a stream.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::Polled;
use futures_core::Stream;

use crate::region::{BodyMark, PlainRegion};

/// ItemSource of items: an `IntoIterator`, or a `Stream` that is `Unpin`. `K` is the kind of source; the compiler
/// infers it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an `IntoIterator` nor a `Stream` that is `Unpin`",
    label = "not a source of items",
    note = "pin a stream that is not `Unpin`: `Box::pin(stream)`, or `std::pin::pin!(stream)`"
)]
pub trait ItemSource<K> {
    /// Item of the source.
    type Item;
    /// Items of the source, one after the other.
    type Items: Items<Item = Self::Item>;

    /// Converts the source to its items.
    fn begin(self) -> Self::Items;
}

/// Items of a [`ItemSource`], one after the other.
pub trait Items {
    /// Item of the source.
    type Item;

    /// Polls for the next item.
    #[doc(hidden)]
    fn poll_next(&mut self, region: &PlainRegion, cx: &mut Context<'_>) -> Polled<Option<Self::Item>>;
}

/// Kind of a [`ItemSource`] that is an iterator.
#[derive(Debug)]
pub struct FromIterator;

/// Kind of a [`ItemSource`] that is a stream.
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
impl<I: IntoIterator> ItemSource<FromIterator> for I {
    type Item = I::Item;
    type Items = Iterated<I::IntoIter>;

    fn begin(self) -> Self::Items {
        Iterated(self.into_iter())
    }
}

#[diagnostic::do_not_recommend]
impl<S: Stream + Unpin> ItemSource<FromStream> for S {
    type Item = S::Item;
    type Items = Streamed<S>;

    fn begin(self) -> Self::Items {
        Streamed { stream: self, mark: BodyMark::default() }
    }
}

impl<I: Iterator> Items for Iterated<I> {
    type Item = I::Item;

    #[inline]
    fn poll_next(&mut self, _: &PlainRegion, _: &mut Context<'_>) -> Polled<Option<I::Item>> {
        Polled::Ready(self.0.next())
    }
}

impl<S: Stream + Unpin> Items for Streamed<S> {
    type Item = S::Item;

    fn poll_next(&mut self, region: &PlainRegion, cx: &mut Context<'_>) -> Polled<Option<S::Item>> {
        let next = Next(&mut self.stream);
        region.poll_beside(core::pin::pin!(next), &self.mark, cx.waker())
    }
}

/// Future of the next item of a stream.
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
