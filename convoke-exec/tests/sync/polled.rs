//! Futures that are polled by hand, outside all tasks: the tests see each step.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) struct Polled<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl<F: Future> Polled<F> {
    /// Polls it; `None` if it waits.
    pub(crate) fn poll(&mut self) -> Option<F::Output> {
        let waker = Waker::from(self.wakes.clone());
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// How often it was woken.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::Relaxed)
    }
}

/// Not polled yet.
pub(crate) fn polled<F: Future>(future: F) -> Polled<F> {
    Polled { future: Box::pin(future), wakes: Arc::default() }
}

/// Polled once, and waits.
#[track_caller]
pub(crate) fn waits<F: Future>(future: F) -> Polled<F> {
    let mut polled = polled(future);
    assert!(polled.poll().is_none(), "it does not wait");
    polled
}

/// Polled once, and ready.
#[track_caller]
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    polled(future).poll().expect("it waits")
}
