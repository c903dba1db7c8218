//! `for_each_concurrent(items, limit, f)`: a loop whose iterations overlap.

use core::fmt;
use core::future::Future;
use core::num::NonZeroUsize;
use core::ops::ControlFlow;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::engine::{Engine, Over};
use super::source::{ItemSource, Items};

/// Calls an `async` function for each item, for at most `limit` items at a time. The function returns `()`;
/// or a `Result<(), E>`, whose first error ends the loop; or a `ControlFlow<B>`, whose first `Break` does.
/// Then the running futures are asked to stop and awaited.
///
/// Use this if the calls return nothing but errors. Use [`map_concurrent`](crate::map_concurrent()) for their
/// results, and a [`scope`](crate::scope()) if they are to run in parallel.
///
/// - *Completes with* `()`, `Ok(())` or `Continue(())` when all have ended; or with the error or `Break` that
///   ended the loop. Stopped, if one of the futures was stopped.
/// - *If dropped*, the running futures are dropped.
/// - *Runs on* the task, one future at a time; only woken futures are polled. They may borrow from around.
/// - *Panics* with the first panic of a future, when the running ones have ended; outside a task; and if
///   `limit` is zero.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use convoke::prelude::*;
/// use convoke::task::for_each_concurrent;
///
/// let total = AtomicUsize::new(0);
/// let outcome = block_on(async {
///     for_each_concurrent(["a", "bc", "def"], 2, async |text: &str| {
///         checkpoint().await;
///         total.fetch_add(text.len(), Ordering::Relaxed);
///         if text.len() < 9 { Ok(()) } else { Err("too long") }
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(Ok(())));
/// assert_eq!(total.into_inner(), 6);
/// ```
#[track_caller]
pub fn for_each_concurrent<S, K, F, R>(items: S, limit: usize, f: F) -> ForEachConcurrent<S::Items, F, R>
where
    S: ItemSource<K>,
    F: FnMut(S::Item) -> R,
    R: Future<Output: EachOutput>,
{
    let limit = NonZeroUsize::new(limit).expect("the limit of concurrent work must be one or more");
    ForEachConcurrent { engine: Engine::new(items.begin(), limit, f, Location::caller()), failure: None }
}

/// Output of an iteration of [`for_each_concurrent()`] or [`repeat`](crate::schedule::repeat), and of the
/// whole loop: `()`, a `Result<(), E>`, or a `ControlFlow<B>`.
#[diagnostic::on_unimplemented(
    message = "an iteration of `for_each_concurrent` or `repeat` cannot return `{Self}`",
    label = "returns `{Self}`, which would be lost",
    note = "it returns `()`, a `Result<(), E>`, or a `ControlFlow<B>`; use `map_concurrent` for values"
)]
pub trait EachOutput: Sized {
    /// Makes the output of a loop that was not ended early.
    fn well() -> Self;

    /// Returns true if this output ends the loop: an error, or a `Break`.
    fn is_failure(&self) -> bool;
}

impl EachOutput for () {
    fn well() {}

    #[inline]
    fn is_failure(&self) -> bool {
        false
    }
}

impl<E> EachOutput for Result<(), E> {
    fn well() -> Self {
        Ok(())
    }

    #[inline]
    fn is_failure(&self) -> bool {
        self.is_err()
    }
}

impl<B> EachOutput for ControlFlow<B> {
    fn well() -> Self {
        Self::Continue(())
    }

    #[inline]
    fn is_failure(&self) -> bool {
        self.is_break()
    }
}

/// Future of [`for_each_concurrent()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct ForEachConcurrent<I, F, R: Future> {
    engine: Engine<I, F, R>,
    failure: Option<R::Output>,
}

impl<I, F, R> Future for ForEachConcurrent<I, F, R>
where
    I: Items,
    F: FnMut(I::Item) -> R,
    R: Future<Output: EachOutput>,
{
    type Output = R::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        let this = self.get_mut();
        this.engine.begin_poll();
        // Each result takes from the budget of the task; the engine waits when that is spent.
        loop {
            match this.engine.poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => {
                    return Poll::Ready(this.failure.take().unwrap_or_else(EachOutput::well));
                }
                Poll::Ready(Some(output)) if output.is_failure() => {
                    this.failure = Some(output);
                    this.engine.finish(Over::Closed);
                }
                Poll::Ready(Some(_)) => {}
            }
        }
    }
}

// The futures are in boxes, and nothing else is pinned.
impl<I, F, R: Future> Unpin for ForEachConcurrent<I, F, R> {}

impl<I, F, R: Future> fmt::Debug for ForEachConcurrent<I, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForEachConcurrent").field(&self.engine).finish()
    }
}
