//! Calls that are cut short: stopped after some checkpoints, or dropped.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use convoke::prelude::*;
use convoke::{catch_stopped, local_scope};

/// Runs a future for some checkpoints, then requests it to stop. Returns its output, unless it was stopped.
pub(crate) async fn stopped_soon<F: Future<Output: Send> + Send>(
    future: F,
    patience: usize,
) -> Option<F::Output> {
    local_scope(async |s| {
        let handle = s.spawn_future(future);
        for _ in 0..patience {
            checkpoint().await;
        }
        handle.request_stop(StopReason::Requested);
        catch_stopped(handle).await.ok()
    })
    .await
}

/// Polls a future once and drops it. Returns its output if it was ready.
pub(crate) async fn polled_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
