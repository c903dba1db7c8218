//! The memory of a generator: the exchange, and behind it the body.
//!
//! Rule 1: after `new` there are only shared references to the exchange, until the memory is dropped. Rule 2:
//! `Body` owns the future, which does not move; a reference to it exists only in `poll`, which has `&mut
//! self`.

#![allow(unsafe_code)]

use core::future::Future;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use convoke_core::raw::KeptFrame;
use convoke_core::unsize_box;

use super::exchange::{Exchange, Identity, Settled};
use crate::framed::Framed;

/// The body of a generator, with the exchange before it.
pub(super) struct Body<T, F: ?Sized>(Framed<InMemory<T, F>>);

#[repr(C)]
struct InMemory<T, F: ?Sized> {
    exchange: Exchange<T>,
    /// Dropped by `drop`, inside the region.
    future: ManuallyDrop<F>,
}

impl<T, F> Body<T, F> {
    /// Creates the body of a new generator with `make`, which gets the identity of the generator.
    #[track_caller]
    pub(super) fn new(make: impl FnOnce(Identity<T>) -> F) -> Self {
        let exchange = Exchange::new();
        let future = ManuallyDrop::new(make(exchange.identity()));
        let memory = Framed::new(InMemory { exchange, future });
        // SAFETY: the memory does not move, and rule 1 holds from here on.
        unsafe { KeptFrame::settle(NonNull::new_unchecked(&raw mut (*memory.pointer().as_ptr()).exchange)) };
        Self(memory)
    }
}

impl<T, F: ?Sized> Body<T, F> {
    /// Returns the exchange.
    #[inline]
    pub(super) fn exchange(&self) -> &Exchange<T> {
        // SAFETY: the memory lives as long as `self`; rule 1: the exchange is only shared.
        unsafe { &(*self.0.pointer().as_ptr()).exchange }
    }

    /// Polls the body.
    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output>
    where
        F: Future,
    {
        let memory = self.0.pointer().as_ptr();
        let poll = move |cx: &mut Context<'_>| {
            // SAFETY: rule 2: this is the only reference to the future, which is not moved before it is
            // dropped.
            unsafe { Pin::new_unchecked(&mut *(*memory).future) }.poll(cx)
        };
        self.settled().polls(cx, poll)
    }

    /// Returns true if something in the body held the task in the last poll: it must not be dropped yet.
    pub(super) fn is_held(&self) -> bool {
        self.settled().is_held()
    }

    #[inline]
    fn settled(&self) -> Settled<'_, T> {
        // SAFETY: `new` has settled the frame. The body is polled in `poll` only, which has `&mut self`, and
        // calls this before it does so.
        unsafe { Settled::new(self.exchange()) }
    }
}

impl<'a, T, F: Future + Send + 'a> Body<T, F> {
    /// Erases the type of the body.
    pub(super) fn erased(self) -> Body<T, dyn Future<Output = F::Output> + Send + 'a> {
        Body(self.0.map(|body| unsize_box!(body, InMemory<T, dyn Future<Output = F::Output> + Send + 'a>)))
    }
}

impl<T, F: ?Sized> Drop for InMemory<T, F> {
    fn drop(&mut self) {
        let Self { exchange, future } = self;
        // SAFETY: this is the destructor: the future is dropped once, and not used again.
        exchange.region.within(|| unsafe { ManuallyDrop::drop(future) });
    }
}
