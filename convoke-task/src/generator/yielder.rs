//! The body's side of a generator: the yielder.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::Frame;

use super::exchange::{Identity, give_at_once, with_slot};

/// Yields the values of a [`generator()`](super::generator()), which passes it to its body. It can be copied,
/// and passed to functions that the body awaits. It works only inside that body.
pub struct Yielder<T> {
    identity: Identity<T>,
}

impl<T> Yielder<T> {
    pub(super) fn new(identity: Identity<T>) -> Self {
        Self { identity }
    }

    /// Passes a value to the consumer, and waits until the consumer asks for the next one.
    ///
    /// Several branches of a body, in a `join` for example, may yield: each waits for its turn.
    ///
    /// - *Completes with* `()`. Stopped, if the consumer's task is asked to stop, or the generator is closed.
    /// - *If dropped* before the value was passed on, the value is dropped.
    /// - *Runs on* the task of the consumer.
    /// - *Panics* outside its generator: in another task, for example.
    #[inline]
    #[track_caller]
    pub fn yield_value(&self, value: T) -> Yield<T> {
        Yield { not_given: Some(NotGiven { value, location: Location::caller() }), identity: self.identity }
    }
}

impl<T> Clone for Yielder<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Yielder<T> {}

impl<T> fmt::Debug for Yielder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Yielder").field(&self.identity).finish()
    }
}

/// Future of [`Yielder::yield_value`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Yield<T> {
    /// `Some` until the value was passed on.
    not_given: Option<NotGiven<T>>,
    identity: Identity<T>,
}

/// A value that was not passed on yet, and the line that yields it.
struct NotGiven<T> {
    value: T,
    location: &'static Location<'static>,
}

// The value is moved, never pinned.
impl<T> Unpin for Yield<T> {}

impl<T> Future for Yield<T> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.not_given.is_none() {
            // Checked here as well, so that a loop which only yields can be stopped.
            let stopped = Frame::current(|frame| frame.is_some_and(Frame::honour_stop));
            return if stopped { Poll::Pending } else { Poll::Ready(()) };
        }
        let identity = self.identity;
        if give_at_once(identity, cx.waker(), || self.not_given.take().map(|not_given| not_given.value)) {
            return Poll::Pending;
        }
        self.give(cx)
    }
}

impl<T> Yield<T> {
    /// Puts the value into the slot, unless a stop is requested, or the slot is full.
    #[cold]
    #[inline(never)]
    fn give(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if Frame::current(|frame| frame.is_some_and(Frame::honour_stop)) {
            return Poll::Pending;
        }
        let Some(NotGiven { value, location }) = self.not_given.take() else { return Poll::Ready(()) };
        with_slot(self.identity, |slot| {
            let Some(slot) = slot else { outside_its_generator(location) };
            if let Err(value) = slot.put(value) {
                self.not_given = Some(NotGiven { value, location });
            }
            // The consumer polls the body again when it wants the next value. A combinator in between that
            // polls only woken branches must be woken for that.
            if !slot.is_polled_with(cx.waker()) {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }
}

#[cold]
#[inline(never)]
fn outside_its_generator(location: &'static Location<'static>) -> ! {
    panic!(
        "the value that is yielded at {location} has no consumer; await `yield_value` inside the body of its generator, not in \
         another task or generator"
    )
}

impl<T> fmt::Debug for Yield<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = self.not_given.as_ref().map(|not_given| not_given.location);
        f.debug_struct("Yield").field("given", &self.not_given.is_none()).field("at", &location).finish()
    }
}
