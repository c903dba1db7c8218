//! The body's side of a generator: what it yields with.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::Frame;

use super::exchange::{Identity, with_room};

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
        Yield { value: Some(value), identity: self.identity, place: Location::caller() }
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
    value: Option<T>,
    identity: Identity<T>,
    place: &'static Location<'static>,
}

// The value is moved, never pinned.
impl<T> Unpin for Yield<T> {}

impl<T> Future for Yield<T> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Here, so that a loop which only yields can be stopped.
        if Frame::current(|frame| frame.is_some_and(Frame::honour_stop)) {
            return Poll::Pending;
        }
        let Some(value) = self.value.take() else { return Poll::Ready(()) };
        with_room(self.identity, |room| {
            let Some(room) = room else { outside_its_generator(self.place) };
            if let Err(value) = room.put(value) {
                self.value = Some(value);
            }
            // The consumer polls the body again when it wants more. Who is polled by a combinator in between, which asks only
            // those that were woken, must be so.
            if !room.waker.will_wake(cx.waker()) {
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
        f.debug_struct("Yield").field("given", &self.value.is_none()).field("at", &self.place).finish()
    }
}
