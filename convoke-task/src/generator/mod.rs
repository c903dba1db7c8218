//! Generators: an `async` body that yields values to whoever asks for the next one, inside the consumer's task. A consumer
//! that leaves early unwinds the body, with its clean-up.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `exchange.rs` `outside.rs` | how a value gets from the body to its consumer: through a room, which is found through the thread |
//! | `body.rs` | the memory of the body, and of the room |
//! | `yielder.rs` | the body's side |
//! | `next.rs` `close.rs` | the consumer's side: one more, and no more |
//! | `output.rs` | what bodies return, and what of it consumers see |

mod body;
mod close;
mod exchange;
mod next;
mod output;
mod outside;
mod yielder;

pub use close::Close;
pub use next::Next;
pub use output::GeneratorOutput;
pub use yielder::{Yield, Yielder};

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::Panic;
use convoke_core::raw::{Frame, StopWatch};
use futures_core::Stream;

use crate::region::pass_on_stop;
use body::Body;

/// A generator: `body` yields values with the [`Yielder`] that it is given, and runs, in the task of whoever asks for the
/// [next](Generator::next) one, from one `yield_value` to the next. Nothing runs ahead, and nothing is allocated for an item.
///
/// A body that returns `()` makes a stream of values. One that returns a `Result<(), E>` makes a stream of `Result<T, E>`: an
/// error that it returns is the last item. A panic of the body goes on at the consumer.
///
/// A consumer that leaves early says [`close`](Generator::close), or leaves that to [`using`](crate::using()), which does
/// so however the consumer leaves: then the body is asked to stop, ends where it yields or waits, and its clean-up is
/// awaited.
///
/// - *If dropped* in between, the body is dropped: destructors run, awaited clean-up is skipped, and the
///   [hook](crate::set_cleanup_hook) is told of it.
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
///                 break; // The body stops where it yields, and puts the numbers away.
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
        place: Location::caller(),
        _items: PhantomData,
    }
}

/// See [`generator()`]. `F` is the body; without it, a body of any type that returns nothing, as
/// [`erased`](Generator::erased) makes it.
#[must_use = "a generator does nothing until it is asked for a value"]
pub struct Generator<T, F = dyn Future<Output = ()> + Send>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    /// Gone when it has ended.
    body: Option<Body<T, F>>,
    stage: Stage,
    watch: StopWatch,
    /// What the body has returned, if there was a value to be told before.
    returned: Option<F::Output>,
    place: &'static Location<'static>,
    _items: PhantomData<fn() -> T>,
}

/// Where the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has not begun.
    New,
    /// It yields, or waits. It is there.
    Waits,
    /// It has panicked.
    Panicked,
    /// It has returned.
    Ended,
    /// It has ended by the stopped door.
    Stopped,
}

/// Notes that the body has panicked. Forgotten when it has not.
struct Panics<'a, T, F: ?Sized> {
    body: &'a mut Body<T, F>,
    stage: &'a mut Stage,
}

impl<T, F: ?Sized> Drop for Panics<'_, T, F> {
    fn drop(&mut self) {
        *self.stage = Stage::Panicked;
        // A second panic out of here would end the process; the panic hook has told of it.
        let _ = Panic::catch(|| drop(self.body.exchange().take()));
    }
}

/// What has come of polling the body.
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
    /// The next value.
    ///
    /// - *Completes with* it; or `None`, if the body has ended. Stopped, if the body was: also where it yields, if the
    ///   consumer's task was asked to stop.
    /// - *If dropped*, the body waits where it is.
    /// - *Panics* as the body does.
    #[expect(clippy::should_implement_trait, reason = "it is that of a stream")]
    pub fn next(&mut self) -> Next<'_, T, F> {
        Next::new(self)
    }

    /// No more of it: asks the body to stop, and awaits its end, with its clean-up. It is shielded from a stop of the consumer.
    ///
    /// - *Completes with* nothing; where the body returns a `Result`, with an error that it returned on its way out.
    /// - *If dropped*, the body is dropped.
    /// - *Panics* as the body does.
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

    /// Polls the body, which is there.
    #[inline]
    fn advance(&mut self, cx: &mut Context<'_>) -> Advanced<T, F::Output> {
        let Some(body) = &mut self.body else { return Advanced::Stopped };
        let panics = Panics { body, stage: &mut self.stage };
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

    /// The body waits, or something in it has stopped. A hold is passed on only while the consumer waits too: where it
    /// has yielded, the body can be left as it is.
    #[cold]
    fn wait(&mut self, value: Option<T>, cx: &Context<'_>) -> Advanced<T, F::Output> {
        let Some(body) = &self.body else { return Advanced::Stopped };
        let (region, held) = (&body.exchange().region, body.is_held());
        let stopped = Frame::current(|frame| {
            let Some(frame) = frame else { return false };
            let stopped = region.stopped().get() && !held;
            if !stopped && value.is_none() {
                if held {
                    frame.hold();
                }
                self.watch.watch(frame, cx);
                region.hear_now(frame, cx);
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

    /// The body has returned.
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

    /// Lets the body begin, if it has not yet. False if it has ended.
    #[cold]
    fn begin(&mut self) -> bool {
        if self.stage == Stage::New {
            self.stage = Stage::Waits;
        }
        self.stage == Stage::Waits
    }

    /// What there is to be had when the body has ended.
    #[cold]
    fn after_end(&mut self) -> Poll<Option<<F::Output as GeneratorOutput<T>>::Item>> {
        if self.stage == Stage::Stopped {
            // Whoever was stopped by it is not resumed, however often it is polled until it is dropped.
            return pass_on_stop();
        }
        self.body = None;
        Poll::Ready(self.returned.take().and_then(GeneratorOutput::last))
    }
}

impl<'a, T, F> Generator<T, F>
where
    F: Future<Output: GeneratorOutput<T>> + Send + 'a,
{
    /// The same, without the type of its body: to be named in a struct, or kept beside others. Costs an indirect call for
    /// each item.
    pub fn erased(self) -> Generator<T, dyn Future<Output = F::Output> + Send + 'a> {
        Generator {
            body: self.body.map(Body::erased),
            stage: self.stage,
            watch: self.watch,
            returned: self.returned,
            place: self.place,
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
        if this.stage != Stage::Waits && !this.begin() {
            return this.after_end();
        }
        match this.advance(cx) {
            Advanced::Yielded(value) => Poll::Ready(Some(F::Output::item(value))),
            Advanced::Returned(output) => Poll::Ready(output.last()),
            Advanced::Waits => Poll::Pending,
            Advanced::Stopped => pass_on_stop(),
        }
    }
}

// Its body lies elsewhere, and nothing else in it is pinned.
impl<T, F> Unpin for Generator<T, F> where F: Future<Output: GeneratorOutput<T>> + ?Sized {}

impl<T, F> fmt::Debug for Generator<T, F>
where
    F: Future<Output: GeneratorOutput<T>> + ?Sized,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator")
            .field("made at", &self.place)
            .field("ended", &self.body.is_none())
            .finish_non_exhaustive()
    }
}
