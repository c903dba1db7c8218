//! `map_concurrent(items, limit, f)`: results of many items, some at a time, as a stream.

use core::fmt;
use core::future::Future;
use core::num::NonZeroUsize;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::Never;
use futures_core::Stream;

use super::engine::{Engine, Over};
use super::source::{Items, Source};
use crate::cleanup::{AsyncClose, Exit};

/// Calls an `async` function for each item, for at most `limit` of them at a time, and hands out results as they come; or,
/// [in order](MapConcurrent::in_order), as the items did. Items come from an iterator or a stream, and are taken when there
/// is room.
///
/// Everything runs inside the task, and only while it is asked for results; futures may borrow from around. Whoever leaves
/// early says [`close`](MapConcurrent::close), or leaves that to [`using`](crate::using()). If the future of an item stops or
/// panics the others are asked to stop, brought home, and so does whoever asked for a result.
///
/// - *If dropped*, what runs is dropped.
/// - *Runs on* the task that asks for results, all in turn. A future that was woken is polled, the others are not.
/// - *Panics* if the limit is zero.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::map_concurrent;
///
/// let outcome = block_on(async {
///     let words = ["one", "three", "eleven"];
///     let lengths = map_concurrent(&words, 2, async |word| {
///         checkpoint().await;
///         word.len()
///     });
///     lengths.in_order().collect::<Vec<_>>().await
/// });
/// assert_eq!(outcome, Outcome::Value(vec![3, 5, 6]));
/// ```
///
/// A source that is neither an iterator nor a stream is refused; so is a stream that is not pinned:
///
/// ```compile_fail
/// let _ = convoke::task::map_concurrent(7, 2, async |n: u32| n);
/// ```
#[track_caller]
pub fn map_concurrent<S, K, F, R>(items: S, limit: usize, f: F) -> MapConcurrent<S::Items, F, R>
where
    S: Source<K>,
    F: FnMut(S::Item) -> R,
    R: Future,
{
    let limit = NonZeroUsize::new(limit).expect("the limit of concurrent work is one or more");
    MapConcurrent { engine: Engine::new(items.begin(), limit, f, Location::caller()) }
}

/// See [`map_concurrent()`].
#[must_use = "nothing runs until results are asked for"]
pub struct MapConcurrent<I, F, R: Future> {
    engine: Engine<I, F, R>,
}

impl<I: Items, F: FnMut(I::Item) -> R, R: Future> MapConcurrent<I, F, R> {
    /// Results in the order of the items. One that comes early waits, and counts towards the limit.
    pub fn in_order(mut self) -> Self {
        self.engine.keep_order();
        self
    }

    /// The next result.
    ///
    /// - *Completes with* it; or `None`, if there are no more. Stopped, if the future of an item was, or the source.
    /// - *If dropped*, nothing is lost; nothing runs until the next is asked for.
    /// - *Panics* with the first panic of a future, when all that run have ended; and outside a task.
    #[expect(clippy::should_implement_trait, reason = "it is that of a stream")]
    pub fn next(&mut self) -> NextMapped<'_, I, F, R> {
        NextMapped { map: self }
    }

    /// All results.
    ///
    /// - *Completes with* them. Stopped, if the future of an item was.
    /// - *If dropped*, what runs is dropped.
    /// - *Panics* with the first panic of a future, when all that run have ended; and outside a task.
    pub async fn collect<C: Default + Extend<R::Output>>(mut self) -> C {
        let mut all = C::default();
        while let Some(result) = self.next().await {
            all.extend(Some(result));
        }
        all
    }

    /// No more of it: asks what runs to stop, and awaits its end. It is shielded from a stop of the consumer.
    ///
    /// - *Completes with* nothing in particular.
    /// - *If dropped*, what runs is dropped.
    /// - *Panics* with the first panic of a future, when all have ended; and outside a task.
    pub fn close(self) -> CloseMap<I, F, R> {
        CloseMap { map: self, asked: false }
    }
}

impl<I, F, R, T, E> MapConcurrent<I, F, R>
where
    I: Items,
    F: FnMut(I::Item) -> R,
    R: Future<Output = Result<T, E>>,
{
    /// All results, or the first error: then the others are asked to stop and brought home.
    ///
    /// - *Completes with* them, or the error. Stopped, if the future of an item was.
    /// - *If dropped*, what runs is dropped.
    /// - *Panics* with the first panic of a future, when all that run have ended; and outside a task.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::task::map_concurrent;
    ///
    /// let outcome = block_on(async {
    ///     let parsed = map_concurrent(["1", "2", "x"], 8, async |text: &str| text.parse::<u32>());
    ///     parsed.try_collect::<Vec<_>>().await
    /// });
    /// assert!(outcome.unwrap().is_err());
    /// ```
    pub async fn try_collect<C: Default + Extend<T>>(mut self) -> Result<C, E> {
        let mut all = C::default();
        while let Some(result) = self.next().await {
            match result {
                Ok(result) => all.extend(Some(result)),
                Err(error) => {
                    self.close().await;
                    return Err(error);
                }
            }
        }
        Ok(all)
    }
}

impl<I: Items, F: FnMut(I::Item) -> R, R: Future> Stream for MapConcurrent<I, F, R> {
    type Item = R::Output;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<R::Output>> {
        let engine = &mut self.get_mut().engine;
        engine.begin_poll();
        engine.poll(cx)
    }
}

// Futures lie in boxes, and nothing else in it is pinned.
impl<I, F, R: Future> Unpin for MapConcurrent<I, F, R> {}

/// What runs is asked to stop and awaited, whatever the exit.
#[diagnostic::do_not_recommend]
impl<I, F, R> AsyncClose for MapConcurrent<I, F, R>
where
    I: Items + Send,
    F: FnMut(I::Item) -> R + Send,
    R: Future<Output: Send> + Send,
{
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        CloseMap { map: self, asked: false }.await;
        Ok(())
    }
}

/// See [`MapConcurrent::next`].
#[must_use = "futures do nothing until they are awaited"]
pub struct NextMapped<'a, I, F, R: Future> {
    map: &'a mut MapConcurrent<I, F, R>,
}

impl<I: Items, F: FnMut(I::Item) -> R, R: Future> Future for NextMapped<'_, I, F, R> {
    type Output = Option<R::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.map).poll_next(cx)
    }
}

/// See [`MapConcurrent::close`].
#[must_use = "futures do nothing until they are awaited"]
pub struct CloseMap<I, F, R: Future> {
    map: MapConcurrent<I, F, R>,
    asked: bool,
}

impl<I: Items, F: FnMut(I::Item) -> R, R: Future> Future for CloseMap<I, F, R> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.asked {
            self.asked = true;
            self.map.engine.finish(Over::Closed);
        }
        Pin::new(&mut self.map).poll_next(cx).map(|none| debug_assert!(none.is_none(), "it is over"))
    }
}

impl<I, F, R: Future> fmt::Debug for MapConcurrent<I, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MapConcurrent").field(&self.engine).finish()
    }
}

impl<I, F, R: Future> fmt::Debug for NextMapped<'_, I, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NextMapped").field(&self.map).finish()
    }
}

impl<I, F, R: Future> fmt::Debug for CloseMap<I, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CloseMap").field(&self.map).finish()
    }
}
