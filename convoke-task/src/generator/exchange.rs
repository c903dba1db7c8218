//! The exchange: how a value gets from a generator's body to its consumer, without an allocation and without
//! a lock.
//!
//! The slot for one value lies before the body, in the same memory, with the frame that the body is polled
//! in. `yield_value` finds the frame through the thread, by the number of the generator, and so the slot. A
//! yielder may have been moved anywhere; on a thread that is not polling its generator it finds nothing.
//!
//! 1. A frame can be found only while its body is polled, below on the same stack. So the exchange is alive
//!    for the one that finds it, and no other thread sees it. Outside of tasks there are no frames; a list of
//!    the thread stands for them.
//! 2. A number belongs to one generator, and so to one type of values: an `Identity<T>` is created once, with
//!    that type.
//! 3. Between polls the slot is empty.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use core::task::{Context, Poll, Waker};
use std::time::Instant;

use convoke_core::raw::{Frame, FrameOwner, KeepsFrame, KeptFrame};
use convoke_core::{Env, StopReason};

use super::outside;
use crate::region::PlainRegion;

/// Identity of a generator of `T`s: its number.
pub(super) struct Identity<T> {
    number: u64,
    _values: PhantomData<fn(T) -> T>,
}

impl<T> Clone for Identity<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Identity<T> {}

impl<T> fmt::Debug for Identity<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

/// Shared state of a generator's body and its consumer. It lies before the body.
#[repr(C)]
pub(super) struct Exchange<T> {
    frame: KeptFrame,
    slot: Slot<T>,
    /// The region of the body.
    pub(super) region: PlainRegion,
    /// The number of owners around the code that made the generator.
    depth: usize,
    /// True in a poll in which only the consumer's wait is asked to stop, and not the body.
    only_next_is_asked: Cell<bool>,
}

/// The slot for a value.
pub(super) struct Slot<T> {
    value: Cell<Option<T>>,
    /// The waker that the body is polled with.
    waker: Cell<*const Waker>,
}

// SAFETY: rule 3: between polls there is no value. The address of the waker is only used inside a poll: rule 1.
unsafe impl<T> Send for Slot<T> {}

impl<T> Slot<T> {
    /// Returns true if there is no value.
    #[inline]
    fn is_empty(&self) -> bool {
        // SAFETY: rule 1: no other thread sees the slot; and on this thread nothing else runs before this
        // returns.
        unsafe { (*self.value.as_ptr()).is_none() }
    }

    /// Puts a value into the slot, or returns it if the slot is full.
    #[inline]
    pub(super) fn put(&self, value: T) -> Result<(), T> {
        if !self.is_empty() {
            return Err(value);
        }
        self.value.set(Some(value));
        Ok(())
    }

    /// Returns true if the body is polled with this waker.
    pub(super) fn is_polled_with(&self, waker: &Waker) -> bool {
        // SAFETY: rule 1: the caller has found the slot, so it runs inside the poll that stored the waker,
        // which borrows it.
        unsafe { &*self.waker.get() }.will_wake(waker)
    }
}

impl<T> Exchange<T> {
    pub(super) fn new() -> Self {
        let slot = Slot { value: Cell::new(None), waker: Cell::new(ptr::null()) };
        let depth = Frame::current(|frame| frame.map_or(0, Frame::depth));
        Self {
            frame: KeptFrame::new(),
            slot,
            region: PlainRegion::new(),
            depth,
            only_next_is_asked: Cell::new(false),
        }
    }

    pub(super) fn identity(&self) -> Identity<T> {
        Identity { number: self.frame.number(), _values: PhantomData }
    }

    /// Returns true if only the consumer's wait is asked to stop: by a `timeout` around `next`, for example. The
    /// generator was made outside of what is asked, so it lives on, and the body hears nothing.
    #[inline]
    pub(super) fn hears_only_next(&self, outer: &Frame<'_>) -> bool {
        let only_next = outer.is_asked_to_stop() && !self.region.is_asked() && !outer.is_asked_at(self.depth);
        self.only_next_is_asked.set(only_next);
        only_next
    }

    /// Polls the body outside of tasks.
    #[cold]
    #[inline(never)]
    fn polls_outside<R>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<R>,
    ) -> Poll<R> {
        outside::listed(self.frame.number(), NonNull::from(self).cast(), || poll(cx))
    }

    /// Takes the value that the body has yielded in the last poll, if there is one.
    #[inline]
    pub(super) fn take(&self) -> Option<T> {
        self.slot.value.take()
    }

    /// Returns the frame around that of the body, while the body is polled.
    fn around(&self) -> &Frame<'_> {
        // SAFETY: only the methods of `FrameOwner` call this, through the frame; and that can be found only
        // while the body is polled: rule 1.
        unsafe { self.frame.around() }
    }
}

/// An exchange whose frame was [settled](KeptFrame::settle), while its body is not being polled.
#[derive(Clone, Copy)]
pub(super) struct Settled<'a, T>(&'a Exchange<T>);

impl<'a, T> Settled<'a, T> {
    /// Takes an exchange.
    ///
    /// # Safety
    /// Its frame was settled, and its body is not being polled until `polls` is called.
    #[inline]
    pub(super) unsafe fn new(exchange: &'a Exchange<T>) -> Self {
        Self(exchange)
    }

    /// Polls the body, with its frame as the current one.
    #[inline]
    pub(super) fn polls<R>(
        self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<R>,
    ) -> Poll<R> {
        let exchange = self.0;
        exchange.slot.waker.set(cx.waker());
        Frame::current(|frame| {
            let Some(outer) = frame else { return exchange.polls_outside(cx, poll) };
            if exchange.hears_only_next(outer) {
                exchange.region.hear_exploration(cx);
            } else {
                exchange.region.hear_now(outer, cx);
            }
            let asked = exchange.region.is_asked();
            // SAFETY: the type: the frame was settled, and the body is not polled. `outer` is the current frame.
            unsafe { exchange.frame.within(outer, asked, || poll(cx)) }
        })
    }

    /// Returns true if something in the body held the task in the last poll: it must not be dropped yet.
    pub(super) fn is_held(&self) -> bool {
        // SAFETY: the type: the frame was settled, and the body is not polled.
        unsafe { self.0.frame.is_held() }
    }
}

impl<T> FrameOwner for Exchange<T> {
    fn env(&self) -> &Env {
        self.region.env_of(self, None, self.around())
    }

    fn stop_reason(&self) -> Option<StopReason> {
        if self.only_next_is_asked.get() {
            return self.region.stop_reason();
        }
        self.region.stop_reason_in(self.around())
    }

    fn deadline(&self) -> Option<Instant> {
        self.around().deadline()
    }

    fn around(&self) -> Option<&Frame<'_>> {
        Some(Exchange::around(self))
    }
}

// SAFETY: the type is `repr(C)`, and its first field is the frame.
unsafe impl<T> KeepsFrame for Exchange<T> {
    fn stopped(&self) -> &Cell<bool> {
        self.region.stopped()
    }
}

/// Puts a value into the slot, in the common case: the current frame is that of the generator with this
/// number, no stop is requested, the slot is empty, and the body is polled with this waker. Returns false
/// otherwise.
#[inline]
pub(super) fn give_at_once<T>(
    identity: Identity<T>,
    waker: &Waker,
    value: impl FnOnce() -> Option<T>,
) -> bool {
    Frame::current(|frame| {
        let Some(frame) = frame else { return false };
        let Some(found) = KeptFrame::nearest(frame, identity.number) else { return false };
        with_found(identity, found.cast(), |slot| {
            if frame.is_asked_to_stop() || !slot.is_empty() || !ptr::eq(slot.waker.get(), waker) {
                return false;
            }
            slot.value.set(value());
            true
        })
    })
}

/// Calls `f` with the slot of an exchange that was found on this thread by the number of its generator.
#[inline]
fn with_found<T, R>(_: Identity<T>, found: NonNull<()>, f: impl FnOnce(&Slot<T>) -> R) -> R {
    // SAFETY: rule 1: the generator is being polled below on this stack, so its exchange is alive; the
    // reference does not leave `f`. Rule 2: its slot is for values of type `T`.
    f(unsafe { &(*found.cast::<Exchange<T>>().as_ptr()).slot })
}

/// Calls `f` with the slot of this generator, or with `None` if the generator is not being polled on this
/// thread.
pub(super) fn with_slot<T, R>(identity: Identity<T>, f: impl FnOnce(Option<&Slot<T>>) -> R) -> R {
    let inside = Frame::current(|frame| KeptFrame::find(frame?, identity.number));
    let found = inside.map(NonNull::cast).or_else(|| outside::find(identity.number));
    match found {
        Some(found) => with_found(identity, found, |slot| f(Some(slot))),
        None => f(None),
    }
}
