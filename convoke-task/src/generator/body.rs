//! The body of a generator, and what lies before it, in memory of its own.

#![allow(unsafe_code)]

use core::future::Future;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use convoke_core::raw::KeptFrame;

use super::exchange::{Exchange, Identity};
use crate::framed::Framed;

/// See the head of this file. It has been settled, and so there are only shared references to the exchange until it is dropped.
pub(super) struct Body<T, F: ?Sized>(Framed<InMemory<T, F>>);

#[repr(C)]
struct InMemory<T, F: ?Sized> {
    exchange: Exchange<T>,
    /// Dropped by `drop`.
    future: ManuallyDrop<F>,
}

impl<T, F> Body<T, F> {
    /// The body that `make` makes for the generator with this number.
    #[track_caller]
    pub(super) fn new(make: impl FnOnce(Identity<T>) -> F) -> Self {
        let exchange = Exchange::new();
        let future = ManuallyDrop::new(make(exchange.identity()));
        let memory = Framed::new(InMemory { exchange, future });
        // SAFETY: it stays there, and we lend it as the head of this type says.
        unsafe { KeptFrame::settle(NonNull::new_unchecked(&raw mut (*memory.pointer().as_ptr()).exchange)) };
        Self(memory)
    }
}

impl<T, F: ?Sized> Body<T, F> {
    /// What lies before it.
    #[inline]
    pub(super) fn exchange(&self) -> &Exchange<T> {
        // SAFETY: it is there as long as this is, and is only shared.
        unsafe { &(*self.0.pointer().as_ptr()).exchange }
    }

    /// Polls it.
    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output>
    where
        F: Future,
    {
        let memory = self.0.pointer().as_ptr();
        let poll = move |cx: &mut Context<'_>| {
            // SAFETY: it is ours, stays where it is until it is dropped there, and is beside the exchange.
            unsafe { Pin::new_unchecked(&mut *(*memory).future) }.poll(cx)
        };
        // SAFETY: it has been settled; and who has the only reference to us does not poll.
        unsafe { self.exchange().polls(cx, poll) }
    }

    /// Whether something in it must not be dropped yet, as of the last poll.
    pub(super) fn is_held(&self) -> bool {
        // SAFETY: as above: `poll` would have the only reference to us.
        unsafe { self.exchange().is_held() }
    }
}

impl<'a, T, F: Future + Send + 'a> Body<T, F> {
    /// The same, as one of any type.
    pub(super) fn erased(self) -> Body<T, dyn Future<Output = F::Output> + Send + 'a> {
        // SAFETY: the pointer is the same.
        Body(unsafe {
            self.0.with_pointer(|body| body as *mut InMemory<T, dyn Future<Output = F::Output> + Send + 'a>)
        })
    }
}

impl<T, F: ?Sized> Drop for InMemory<T, F> {
    fn drop(&mut self) {
        let Self { exchange, future } = self;
        // SAFETY: it is not used again.
        exchange.region.within(|| unsafe { ManuallyDrop::drop(future) });
    }
}
