//! Senders that are awaited by hand, in ways that no `async fn` does.

#![cfg(not(feature = "loom"))]

use std::future::{Future, IntoFuture, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;

use convoke::prelude::*;
use convoke::{checkpoint, sync_wait, task};

/// Polls a future once, and says whether that has panicked.
async fn panics_when_polled<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|cx| Poll::Ready(catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))).is_err())).await
}

/// Before, the second poll ended the task by the stopped door at its next wait, and the result was lost.
#[test]
fn a_finished_sender_that_is_polled_again_panics_and_stops_nobody() {
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
        "went on"
    }));
    assert_eq!(outcome, Outcome::Value("went on"));
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
