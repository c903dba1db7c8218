//! `map_concurrent(items, limit, f)`: a stream of the results of many items, several at a time.

use core::fmt;
use core::future::Future;
use core::num::NonZeroUsize;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::Never;
use futures_core::Stream;

use super::engine::{Engine, Over};
use super::source::{ItemSource, Items};
use crate::cleanup::{AsyncClose, Exit};

/// Calls an `async` function for each item, for at most `limit` items at a time, and returns results in the
/// order in which the futures end; or, [in order](MapConcurrent::in_order), in that of the items. Items come
/// from an iterator or a stream, and are taken only when a future can be started.
///
/// Use this if the results are used one by one. Use [`for_each_concurrent`](crate::for_each_concurrent()) if
/// there are none, and a [`scope`](crate::scope()) if the calls are to run in parallel.
///
/// The futures run inside the task, and only while it waits for a result. They may borrow from around. A
/// consumer that leaves early calls [`close`](MapConcurrent::close), or uses [`using`](crate::using()). If a
/// future stops or panics, the others are asked to stop and awaited; then the consumer stops or panics.
///
/// - *Completes with* results: see [`MapConcurrent::next`].
/// - *If dropped*, the running futures are dropped.
/// - *Runs on* the task that asks for results, one future at a time; only woken futures are polled.
/// - *Panics* if `limit` is zero.
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
/// A source that is neither an iterator nor a stream does not compile; neither does a stream that is not
/// pinned:
///
/// ```compile_fail
/// let _ = convoke::task::map_concurrent(7, 2, async |n: u32| n);
/// ```
#[track_caller]
pub fn map_concurrent<S, K, F, R>(items: S, limit: usize, f: F) -> MapConcurrent<S::Items, F, R>
where
    S: ItemSource<K>,
    F: FnMut(S::Item) -> R,
    R: Future,
{
    let limit = NonZeroUsize::new(limit).expect("the limit of concurrent work must be one or more");
    MapConcurrent { engine: Engine::new(items.begin(), limit, f, Location::caller()) }
}

/// Stream of results. Returned by [`map_concurrent()`].
#[must_use = "nothing runs until a result is awaited"]
pub struct MapConcurrent<I, F, R: Future> {
    engine: Engine<I, F, R>,
}

impl<I: Items, F: FnMut(I::Item) -> R, R: Future> MapConcurrent<I, F, R> {
    /// Returns results in the order of the items. A result that comes early is stored, and counts towards the
    /// limit.
    pub fn in_order(mut self) -> Self {
        self.engine.keep_order();
        self
    }

    /// Waits for the next result.
    ///
    /// - *Completes with* the result; or with `None`, if there are no more. Stopped, if a future or the
    ///   source was stopped.
    /// - *If dropped*, no result is lost. The futures pause until the next call.
    /// - *Runs on* the task that awaits it.
    /// - *Panics* with the first panic of a future, when the running ones have ended; and outside a task.
    #[expect(clippy::should_implement_trait, reason = "the name that streams use")]
    pub fn next(&mut self) -> NextMapped<'_, I, F, R> {
        NextMapped { map: self }
    }

    /// Collects all results.
    ///
    /// - *Completes with* the collection. Stopped, if a future was stopped.
    /// - *If dropped*, the running futures are dropped.
    /// - *Runs on* the task that awaits it.
    /// - *Panics* with the first panic of a future, when the running ones have ended; and outside a task.
    pub async fn collect<C: Default + Extend<R::Output>>(mut self) -> C {
        let mut all = C::default();
        while let Some(result) = self.next().await {
            all.extend(Some(result));
        }
        all
    }

    /// Asks the running futures to stop, and awaits them. A stop request to the consumer's task does not
    /// interrupt this.
    ///
    /// - *Completes with* `()`.
    /// - *If dropped*, the running futures are dropped.
    /// - *Runs on* the task that awaits it.
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
    /// Collects all results. After the first error the other futures are asked to stop and awaited.
    ///
    /// - *Completes with* the collection, or with the error. Stopped, if a future was stopped.
    /// - *If dropped*, the running futures are dropped.
    /// - *Runs on* the task that awaits it.
    /// - *Panics* with the first panic of a future, when the running ones have ended; and outside a task.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::task::map_concurrent;
    ///
    /// let outcome = block_on(async {
    ///     let parse = async |text: &str| text.parse::<u32>();
    ///     let parsed = map_concurrent(["1", "2", "x"], 8, parse);
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

// The futures are in boxes, and nothing else is pinned.
impl<I, F, R: Future> Unpin for MapConcurrent<I, F, R> {}

/// Asks the running futures to stop and awaits them, for every exit.
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

/// Future of [`MapConcurrent::next`].
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

/// Future of [`MapConcurrent::close`].
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
        Pin::new(&mut self.map)
            .poll_next(cx)
            .map(|none| debug_assert!(none.is_none(), "a closed map returns no results"))
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
