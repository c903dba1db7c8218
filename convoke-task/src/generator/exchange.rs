//! How a value gets from a generator's body to its consumer, without an allocation and without a lock.
//!
//! The room for one value lies before the body, in the same memory, with the frame that the body is polled in. Who yields finds
//! the frame through the thread, by its number, and so the room. A yielder may have been carried anywhere; where its
//! generator is not being polled it finds nothing.
//!
//! 1. A frame is found only while the body is polled, further up on the stack; so its room is there for whoever finds it, and
//!    no other thread sees it. Outside of all tasks there are no frames, and a list of the thread stands for them.
//! 2. A number belongs to one generator, and so to one type of values: it is made once, with that type.
//! 3. Between polls the room is empty.

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
use crate::region::Region;

/// The number of a generator of `T`s.
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

/// What lies before the body of a generator.
#[repr(C)]
pub(super) struct Exchange<T> {
    frame: KeptFrame,
    room: Room<T>,
    /// What the body runs in.
    pub(super) region: Region,
}

/// The room for a value.
pub(super) struct Room<T> {
    value: Cell<Option<T>>,
    /// With which the body is polled.
    waker: Cell<*const Waker>,
}

// SAFETY: rule 3: between polls there is no value, and an address that nobody follows.
unsafe impl<T> Send for Room<T> {}

impl<T> Room<T> {
    /// Whether there is no value.
    #[inline]
    fn is_empty(&self) -> bool {
        // SAFETY: nobody else is at it, on this thread or another, before this returns.
        unsafe { (*self.value.as_ptr()).is_none() }
    }

    /// Puts a value there, if there is none.
    #[inline]
    pub(super) fn put(&self, value: T) -> Result<(), T> {
        if !self.is_empty() {
            return Err(value);
        }
        self.value.set(Some(value));
        Ok(())
    }

    /// Whether this is the waker that the body is polled with.
    pub(super) fn is_polled_with(&self, waker: &Waker) -> bool {
        // SAFETY: rule 1: who has found the room is inside of the poll that has set it, for which it is borrowed.
        unsafe { &*self.waker.get() }.will_wake(waker)
    }
}

impl<T> Exchange<T> {
    pub(super) fn new() -> Self {
        let room = Room { value: Cell::new(None), waker: Cell::new(ptr::null()) };
        Self { frame: KeptFrame::new(), room, region: Region::new() }
    }

    pub(super) fn identity(&self) -> Identity<T> {
        Identity { number: self.frame.number(), _values: PhantomData }
    }

    /// Polls the body here, inside of the nearest frame, or outside of all tasks.
    ///
    /// # Safety
    /// It has been [settled](KeptFrame::settle), and the body is not being polled.
    #[inline]
    pub(super) unsafe fn polls<R>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<R>,
    ) -> Poll<R> {
        self.room.waker.set(cx.waker());
        Frame::current(|frame| {
            let Some(outer) = frame else { return self.polls_outside(cx, poll) };
            self.region.hear_now(outer, cx);
            let asked = self.region.is_asked();
            // SAFETY: the caller's; and that is the nearest frame.
            unsafe { self.frame.within(outer, asked, || poll(cx)) }
        })
    }

    #[cold]
    #[inline(never)]
    fn polls_outside<R>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<R>,
    ) -> Poll<R> {
        outside::noted(self.frame.number(), NonNull::from(self).cast(), || poll(cx))
    }

    /// What the body has yielded when it was polled, if it has.
    #[inline]
    pub(super) fn take(&self) -> Option<T> {
        self.room.value.take()
    }

    /// Whether something in the body must not be dropped yet, as of the last poll.
    ///
    /// # Safety
    /// As for [`polls`](Exchange::polls).
    pub(super) unsafe fn is_held(&self) -> bool {
        // SAFETY: the caller's.
        unsafe { self.frame.is_held() }
    }

    fn around(&self) -> &Frame<'_> {
        // SAFETY: who asks has the frame, which is nowhere but in the window while the body is polled.
        unsafe { self.frame.around() }
    }
}

impl<T> FrameOwner for Exchange<T> {
    fn env(&self) -> &Env {
        self.region.env_in(self.around())
    }

    fn stop_reason(&self) -> Option<StopReason> {
        self.region.stop_reason_in(self.around())
    }

    fn deadline(&self) -> Option<Instant> {
        self.region.deadline_in(self.around())
    }

    fn around(&self) -> Option<&Frame<'_>> {
        Some(Exchange::around(self))
    }
}

// SAFETY: it is `repr(C)`, and begins with its frame.
unsafe impl<T> KeepsFrame for Exchange<T> {
    fn stopped(&self) -> &Cell<bool> {
        self.region.stopped()
    }
}

/// Gives a value to the consumer, if that takes no more than that: if the nearest frame is that of the generator with this
/// number, there is no stop to be honoured, the room is empty, and the body is polled with this waker.
#[inline]
pub(super) fn give_at_once<T>(
    identity: Identity<T>,
    waker: &Waker,
    value: impl FnOnce() -> Option<T>,
) -> bool {
    Frame::current(|frame| {
        let Some(frame) = frame else { return false };
        let Some(found) = KeptFrame::nearest(frame, identity.number) else { return false };
        // SAFETY: rules 1 and 2: see `with_room`.
        let room = unsafe { &(*found.cast::<Exchange<T>>().as_ptr()).room };
        if frame.is_asked_to_stop() || !room.is_empty() || !ptr::eq(room.waker.get(), waker) {
            return false;
        }
        room.value.set(value());
        true
    })
}

/// Calls `f` with the room of this generator, or `None` if it is not being polled here.
pub(super) fn with_room<T, R>(identity: Identity<T>, f: impl FnOnce(Option<&Room<T>>) -> R) -> R {
    let inside = Frame::current(|frame| KeptFrame::find(frame?, identity.number));
    let found = inside.map(NonNull::cast).or_else(|| outside::find(identity.number));
    // SAFETY: rules 1 and 2: it is the exchange of a generator that is polled further up on this stack, and its room is for
    // values of this type. The reference does not leave `f`.
    f(found.map(|exchange| unsafe { &(*exchange.cast::<Exchange<T>>().as_ptr()).room }))
}
