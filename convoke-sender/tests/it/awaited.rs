//! Senders that are awaited by hand, in ways that no `async fn` does.

use std::future::{Future, IntoFuture, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use convoke::checkpoint;
use convoke::sender::prelude::*;
use convoke::sender::sync_wait;
use convoke::task::task;
use convoke_sender::testing::{Connected, Gate};

/// Polls a future once, and returns true if that panicked.
async fn panics_when_polled<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|cx| Poll::Ready(catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))).is_err())).await
}

/// Regression: the second poll stopped the task at its next await, and the result was lost.
#[test]
fn a_finished_sender_that_is_polled_again_panics_and_does_not_stop_the_task() {
    let outcome = sync_wait(task(async {
        let mut inline = pin!(just(1).into_future());
        let mut boxed = pin!(just(2).boxed().into_future());
        let sum = inline.as_mut().await + boxed.as_mut().await;
        assert!(panics_when_polled(inline.as_mut()).await);
        assert!(panics_when_polled(boxed.as_mut()).await);
        assert!(panics_when_polled(boxed.as_mut()).await);
        checkpoint().await;
        sum
    }));
    assert_eq!(outcome, Outcome::Value(3));
}

#[test]
fn a_sender_that_panicked_panics_again_when_it_is_polled_again() {
    let outcome = sync_wait(task(async {
        let mut bomb = pin!(just(1).then(|_| -> u8 { panic!("bomb") }).into_future());
        assert!(panics_when_polled(bomb.as_mut()).await);
        assert!(panics_when_polled(bomb.as_mut()).await);
        checkpoint().await;
        "continued"
    }));
    assert_eq!(outcome, Outcome::Value("continued"));
}

#[test]
fn a_stopped_sender_that_is_polled_again_passes_the_stop_on_again() {
    let outcome = sync_wait(task(async {
        let mut stopped = pin!(just_stopped::<u8>().into_future());
        assert!(!panics_when_polled(stopped.as_mut()).await);
        assert!(!panics_when_polled(stopped.as_mut()).await);
        checkpoint().await;
        unreachable!("it was stopped")
    }));
    assert_eq!(outcome, Outcome::<(), _>::Stopped);
}

/// A waker that panics on its first call, after it has passed the call on.
struct Bomb(Waker, AtomicBool);

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        self.0.wake_by_ref();
        if !self.1.swap(true, Ordering::Relaxed) {
            panic!("a waker that panics");
        }
    }
}

/// Regression: the panic unwound out of the shared work, and the consumers after this one waited forever.
#[test]
fn a_foreign_waker_that_panics_does_not_keep_others_from_a_shared_result() {
    let gate = Gate::<u32>::new();
    let split = gate.sender().split();
    let shared = split.clone();
    let awaits = task(async move {
        let mut shared = pin!(shared.into_future());
        let mut bomb = None;
        poll_fn(move |cx| {
            let bomb = bomb.get_or_insert_with(|| Arc::new(Bomb(cx.waker().clone(), AtomicBool::new(false))));
            shared.as_mut().poll(&mut Context::from_waker(&Waker::from(bomb.clone())))
        })
        .await
    });
    let first = Connected::new(awaits).start();
    let second = Connected::new(split).start();
    assert!(catch_unwind(AssertUnwindSafe(|| gate.complete(Outcome::Value(3)))).is_ok());
    assert_eq!(second.outcome(), Outcome::Value(3));
    assert_eq!(first.outcome(), Outcome::Value(3));
}
