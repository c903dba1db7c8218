//! Futures that are polled by hand, outside all tasks, and whose wakes are counted. Models check the counts
//! after they have joined their threads.

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

    /// Polls until it completes and returns its output, once after each wake, as a waiting thread does.
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

    /// Returns the output when all other threads have ended. If it waited, it must have been woken.
    #[track_caller]
    pub fn finish(mut self) -> T {
        assert_eq!(self.wakes(), 1, "the future waits, but was not woken once");
        self.poll().expect("the future was woken, but is not ready")
    }
}

impl<T> std::fmt::Debug for PolledByHand<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolledByHand").field("wakes", &self.wakes()).finish_non_exhaustive()
    }
}
