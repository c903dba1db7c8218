//! The body's side of a generator: what it yields with.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::Frame;

use super::exchange::{Identity, give_at_once, with_room};

/// What the body of a [`generator()`](super::generator()) yields with. It may be copied, and lent to functions that the body
/// awaits; it is of use only inside that body.
pub struct Yielder<T> {
    identity: Identity<T>,
}

impl<T> Yielder<T> {
    pub(super) fn new(identity: Identity<T>) -> Self {
        Self { identity }
    }

    /// Gives a value to the consumer, and goes on when that asks for the next one.
    ///
    /// Several parts of a body that run together, in a `join` for example, may yield: each waits for its turn.
    ///
    /// - *Completes with* nothing in particular; stopped, if the consumer was asked to, or wants no more.
    /// - *If dropped*, the value is dropped, if it was not given yet.
    /// - *Panics* outside its generator: in a task of its own, for example.
    #[inline]
    #[track_caller]
    pub fn yield_value(&self, value: T) -> Yield<T> {
        Yield { not_given: Some(NotGiven { value, place: Location::caller() }), identity: self.identity }
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

/// See [`Yielder::yield_value`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Yield<T> {
    /// Until it is given.
    not_given: Option<NotGiven<T>>,
    identity: Identity<T>,
}

/// A value, and where it is yielded. Nobody asks for that any more when it has been given.
struct NotGiven<T> {
    value: T,
    place: &'static Location<'static>,
}

// The value is moved, never pinned.
impl<T> Unpin for Yield<T> {}

impl<T> Future for Yield<T> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.not_given.is_none() {
            // Here too, so that a loop which only yields can be stopped.
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
    /// Gives the value, unless a stop is to be honoured, or another value lies there.
    #[cold]
    #[inline(never)]
    fn give(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if Frame::current(|frame| frame.is_some_and(Frame::honour_stop)) {
            return Poll::Pending;
        }
        let Some(NotGiven { value, place }) = self.not_given.take() else { return Poll::Ready(()) };
        with_room(self.identity, |room| {
            let Some(room) = room else { outside_its_generator(place) };
            if let Err(value) = room.put(value) {
                self.not_given = Some(NotGiven { value, place });
            }
            // The consumer polls the body again when it wants more. Who is polled by a combinator in between, which asks only
            // those that were woken, must be so.
            if !room.is_polled_with(cx.waker()) {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }
}

#[cold]
#[inline(never)]
fn outside_its_generator(place: &'static Location<'static>) -> ! {
    panic!(
        "the value that is yielded at {place} has no consumer: `yield_value` is awaited inside the body of its generator, \
         not in a task or a generator of its own"
    )
}

impl<T> fmt::Debug for Yield<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.not_given.as_ref().map(|not_given| not_given.place);
        f.debug_struct("Yield").field("given", &self.not_given.is_none()).field("at", &place).finish()
    }
}
