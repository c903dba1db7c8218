//! Generators: an `async` body that yields values to a consumer, inside the consumer's task. When the
//! consumer leaves early, the body is stopped, with its clean-up.

// One allocation holds the exchange and the body behind it (`body`). The exchange (`exchange`) has the slot
// for one value, the region of the body, and the frame that the body is polled in.
//
// 1. The consumer polls the generator, on the thread of its task. The body is polled in the exchange's frame.
// 2. The body awaits `yield_value` (`yielder`). That finds the frame through the thread, by the number of the
//    generator, puts the value into the slot, and returns `Pending`. Outside of tasks there are no frames; a
//    list of the thread (`outside`) leads to the exchange instead.
// 3. The consumer takes the value out of the slot in the same poll (`next`). Between polls the slot is empty.
// 4. `close` asks the region to stop, and polls until the body has ended. A drop drops the body.

mod body;
mod close;
mod exchange;
mod next;
mod output;
mod outside;
mod sync_generator;
mod yielder;

pub use close::Close;
pub use next::Next;
pub use output::GeneratorOutput;
pub use sync_generator::{SyncGenerator, SyncYield, SyncYielder, sync_generator};
pub use yielder::{Yield, Yielder};

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::Panic;
use convoke_core::raw::{Frame, StopWatch, budget};
use futures_core::Stream;

use crate::region::pass_on_stop;
use body::Body;

/// Creates a generator from a body that yields values with the [`Yielder`] it gets. The body runs in the task
/// that asks for the [next](Generator::next) value, from one `yield_value` to the next. It does not run
/// ahead, and an item costs no allocation.
///
/// Use this if one body makes values one by one, and awaits in between. Use a channel if it is to run ahead of
/// its consumer.
///
/// A body that returns `()` makes a stream of values. A body that returns a `Result<(), E>` makes a stream of
/// `Result<T, E>`: its error is the last item. A panic of the body goes on in the consumer.
///
/// A consumer that leaves early calls [`close`](Generator::close), or uses [`using`](crate::using()), which
/// closes on every exit. The body is asked to stop, ends where it yields or waits, and its clean-up is
/// awaited.
///
/// - *Completes with* values: see [`Generator::next`].
/// - *If dropped* before its end, the body is dropped: destructors run, awaited clean-up is skipped, and the
///   [hook](crate::set_cleanup_hook) hears of it.
/// - *Runs on* the task that asks for items.
/// - *Panics* if the frame allocator has no memory left for the body.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::generator;
///
/// let outcome = block_on(async {
///     let numbers = generator(async |y| {
///         let clean_up = async |_| println!("the numbers are put away");
///         ensure(clean_up, async {
///             for n in 1_u32.. {
///                 y.yield_value(n * n).await;
///             }
///         })
///         .await;
///     });
///     using(numbers, async |mut numbers| {
///         let mut sum = 0;
///         while let Some(n) = numbers.next().await {
///             sum += n;
///             if n >= 16 {
///                 break; // The body stops where it yields, and its clean-up runs.
///             }
///         }
///         sum
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(1 + 4 + 9 + 16));
/// ```
#[track_caller]
pub fn generator<T, B, F>(body: B) -> Generator<T, F>
where
    B: FnOnce(Yielder<T>) -> F,
    F: Future<Output: GeneratorOutput<T>>,
{
    Generator {
        body: Some(Body::new(|identity| body(Yielder::new(identity)))),
        stage: Stage::New,
        watch: StopWatch::new(),
        returned: None,
        location: Location::caller(),
        _items: PhantomData,
    }
}

/// Generator of `T`s. Returned by [`generator()`]. `F` is the body. `Generator<T>` has a body of any type
/// that returns `()`, as [`erased`](Generator::erased) makes it.
#[must_use = "a generator does nothing until it is asked for a value"]
pub struct Generator<T, F = dyn Future<Output = ()> + Send>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    /// `None` after its end.
    body: Option<Body<T, F>>,
    stage: Stage,
    watch: StopWatch,
    /// The output of the body, if it yielded a value in the same poll, which goes to the consumer first.
    returned: Option<F::Output>,
    location: &'static Location<'static>,
    _items: PhantomData<fn() -> T>,
}

/// State of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not polled yet.
    New,
    /// Yields or waits.
    Waits,
    /// Panicked.
    Panicked,
    /// Returned.
    Ended,
    /// Stopped.
    Stopped,
}

/// Guard of a poll of the body: marks the generator as panicked when it is dropped by an unwind. Forgotten
/// otherwise.
struct PanicGuard<'a, T, F: ?Sized> {
    body: &'a mut Body<T, F>,
    stage: &'a mut Stage,
}

impl<T, F: ?Sized> Drop for PanicGuard<'_, T, F> {
    fn drop(&mut self) {
        *self.stage = Stage::Panicked;
        // A second panic during unwinding would abort the process. The panic hook has reported it.
        let _ = Panic::catch(|| drop(self.body.exchange().take()));
    }
}

/// Result of a poll of the body.
enum Advanced<T, O> {
    Yielded(T),
    Waits,
    Returned(O),
    Stopped,
}

impl<T, F> Generator<T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    /// Waits for the next value.
    ///
    /// - *Completes with* the value; or with `None`, if the body has ended. Stopped, if the body stopped,
    ///   also where it yields because the consumer is asked to stop. If only this call is asked to stop, by a
    ///   `timeout` around it for example, it ends as stopped, and the body stays where it waits.
    /// - *If dropped*, the body stays where it waits.
    /// - *Runs on* the task that awaits it.
    /// - *Panics* with the panic of the body.
    #[expect(clippy::should_implement_trait, reason = "the name that streams use")]
    pub fn next(&mut self) -> Next<'_, T, F> {
        Next::new(self)
    }

    /// Asks the body to stop, and awaits its end, with its clean-up. A stop request to the consumer's task
    /// does not interrupt this.
    ///
    /// - *Completes with* `()`; or, if the body returns a `Result`, with the error that it returned when it
    ///   was stopped.
    /// - *If dropped*, the body is dropped.
    /// - *Runs on* the task that awaits it.
    /// - *Panics* with the panic of the body.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::task::generator;
    ///
    /// let outcome = block_on(async {
    ///     let mut lines = generator(async |y| {
    ///         y.yield_value("one").await;
    ///         y.yield_value("two").await;
    ///         Ok::<(), std::io::Error>(())
    ///     });
    ///     let first = lines.next().await.transpose()?;
    ///     lines.close().await?;
    ///     Ok::<_, std::io::Error>(first)
    /// });
    /// assert_eq!(outcome.unwrap().unwrap(), Some("one"));
    /// ```
    pub fn close(self) -> Close<T, F> {
        Close::new(self)
    }

    /// Polls the body.
    #[inline]
    fn advance(&mut self, cx: &mut Context<'_>) -> Advanced<T, F::Output> {
        let Some(body) = &mut self.body else { return Advanced::Stopped };
        let panics = PanicGuard { body, stage: &mut self.stage };
        let polled = panics.body.poll(cx);
        let exchange = panics.body.exchange();
        if polled.is_pending()
            && !exchange.region.stopped().get()
            && let Some(value) = exchange.take()
        {
            mem::forget(panics);
            return Advanced::Yielded(value);
        }
        let value = exchange.take();
        mem::forget(panics);
        match polled {
            Poll::Pending => self.wait(value, cx),
            Poll::Ready(output) => self.end(output, value),
        }
    }

    /// Handles a body that waits, or in which something has stopped. The task is held only if the consumer
    /// waits as well: a body that has yielded can be dropped.
    #[cold]
    fn wait(&mut self, value: Option<T>, cx: &Context<'_>) -> Advanced<T, F::Output> {
        let Some(body) = &self.body else { return Advanced::Stopped };
        let (exchange, held) = (body.exchange(), body.is_held());
        let region = &exchange.region;
        let stopped = Frame::current(|frame| {
            let Some(frame) = frame else { return false };
            let stopped = region.stopped().get() && !held;
            if !stopped && value.is_none() {
                self.watch.watch(frame, cx);
                let only_next = exchange.hears_only_next(frame);
                if held {
                    frame.hold();
                } else if only_next {
                    // The body stays where it waits, for a later call of `next`.
                    frame.set_stopped();
                }
                if !only_next {
                    region.hear_now(frame, cx);
                }
            }
            stopped
        });
        if stopped {
            self.stage = Stage::Stopped;
            self.body = None;
            return Advanced::Stopped;
        }
        match value {
            Some(value) => Advanced::Yielded(value),
            None => Advanced::Waits,
        }
    }

    /// Handles a body that has returned.
    #[cold]
    fn end(&mut self, output: F::Output, value: Option<T>) -> Advanced<T, F::Output> {
        self.stage = Stage::Ended;
        self.body = None;
        match value {
            Some(value) => {
                self.returned = Some(output);
                Advanced::Yielded(value)
            }
            None => Advanced::Returned(output),
        }
    }

    /// Yields because the budget of the task is spent. A body that must not be dropped yet still holds the task.
    #[cold]
    fn yields<R>(&self) -> Poll<R> {
        if self.body.as_ref().is_some_and(Body::is_held) {
            Frame::hold_current();
        }
        Poll::Pending
    }

    /// Marks the body as begun. Returns false if it has ended.
    #[cold]
    fn begin(&mut self) -> bool {
        if self.stage == Stage::New {
            self.stage = Stage::Waits;
        }
        self.stage == Stage::Waits
    }

    /// Returns the last item of a body that has ended, if there is one.
    #[cold]
    fn after_end(&mut self) -> Poll<Option<<F::Output as GeneratorOutput<T>>::Item>> {
        if self.stage == Stage::Stopped {
            // Polled again after the stop: the consumer is stopped, and must not go on.
            return pass_on_stop();
        }
        self.body = None;
        budget::spend();
        Poll::Ready(self.returned.take().and_then(GeneratorOutput::last))
    }
}

impl<'a, T, F> Generator<T, F>
where
    F: Future<Output: GeneratorOutput<T>> + Send + 'a,
{
    /// Erases the type of the body, so that the generator can be a field, or an element of a collection.
    /// Costs an indirect call per item.
    pub fn erased(self) -> Generator<T, dyn Future<Output = F::Output> + Send + 'a> {
        Generator {
            body: self.body.map(Body::erased),
            stage: self.stage,
            watch: self.watch,
            returned: self.returned,
            location: self.location,
            _items: PhantomData,
        }
    }
}

impl<T, F> Stream for Generator<T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    type Item = <F::Output as GeneratorOutput<T>>::Item;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if !budget::may_proceed(cx) {
            return this.yields();
        }
        if this.stage != Stage::Waits && !this.begin() {
            return this.after_end();
        }
        match this.advance(cx) {
            Advanced::Yielded(value) => {
                budget::spend();
                Poll::Ready(Some(F::Output::item(value)))
            }
            Advanced::Returned(output) => {
                budget::spend();
                Poll::Ready(output.last())
            }
            Advanced::Waits => Poll::Pending,
            Advanced::Stopped => pass_on_stop(),
        }
    }
}

// The body is in memory of its own, and nothing else is pinned.
impl<T, F> Unpin for Generator<T, F> where F: Future<Output: GeneratorOutput<T>> + ?Sized {}

impl<T, F> fmt::Debug for Generator<T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator")
            .field("made at", &self.location)
            .field("ended", &self.body.is_none())
            .finish_non_exhaustive()
    }
}
