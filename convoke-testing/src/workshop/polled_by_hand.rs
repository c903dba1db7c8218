//! Futures that are polled by hand, outside all tasks, and whose wake-ups are counted. A model looks at the counts when its
//! threads are joined.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use convoke_core::raw::sync::thread;

pub struct PolledByHand<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl<'a, T> PolledByHand<'a, T> {
    pub fn new(future: impl Future<Output = T> + Send + 'a) -> Self {
        Self { future: Box::pin(future), wakes: Arc::default() }
    }

    pub fn poll(&mut self) -> Option<T> {
        let waker = Waker::from(self.wakes.clone());
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    pub fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::Relaxed)
    }

    /// What it returns, however often it must be polled: each time it was woken, as a thread does that waits.
    pub fn wait(mut self) -> T {
        loop {
            let wakes = self.wakes();
            if let Some(ended) = self.poll() {
                return ended;
            }
            while self.wakes() == wakes {
                thread::yield_now();
            }
        }
    }

    /// What it returns when everybody else has ended: it must have been woken if it waits.
    #[track_caller]
    pub fn finish(mut self) -> T {
        assert_eq!(self.wakes(), 1, "it waits, and nobody has woken it");
        self.poll().expect("it was woken for nothing")
    }
}

impl<T> std::fmt::Debug for PolledByHand<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolledByHand").field("wakes", &self.wakes()).finish_non_exhaustive()
    }
}
