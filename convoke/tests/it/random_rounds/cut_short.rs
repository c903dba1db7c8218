//! Calls that are not let come to their end: they are asked to stop after a while, or dropped.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use convoke::prelude::*;
use convoke::{catch_stopped, local_scope};

/// Lets it run for a while, then asks it to stop. What it returns, unless it has stopped.
pub(crate) async fn stopped_soon<F: Future<Output: Send> + Send>(
    future: F,
    patience: usize,
) -> Option<F::Output> {
    local_scope(async |s| {
        let handle = s.spawn_future(future);
        for _ in 0..patience {
            checkpoint().await;
        }
        handle.request_stop();
        catch_stopped(handle).await.ok()
    })
    .await
}

/// Polls it once and drops it. What it returned, if it did.
pub(crate) async fn polled_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
