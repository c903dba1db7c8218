//! `stopped()`: ends the awaiting function as stopped.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Frame, outside_a_task};

use super::no_return::NoReturn;

/// Ends the function that awaits it, and the functions that await that one, as stopped, up to the nearest
/// [`catch_stopped`](super::catch_stopped) or the task.
///
/// - *Completes with* nothing: it does not return, and has the type that is expected where it stands.
/// - *If dropped* before it was awaited, nothing happens.
/// - *Runs on* the task's executor.
/// - *Panics* outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::stopped;
///
/// async fn first_even(numbers: &[u32]) -> u32 {
///     match numbers.iter().find(|n| **n % 2 == 0) {
///         Some(n) => *n,
///         None => stopped().await,
///     }
/// }
///
/// assert_eq!(block_on(async { first_even(&[1, 4]).await }), Outcome::Value(4));
/// assert_eq!(block_on(async { first_even(&[1, 3]).await }), Outcome::Stopped);
/// ```
pub fn stopped() -> EndStopped {
    EndStopped(())
}

/// The future of [`stopped()`].
#[derive(Debug)]
#[must_use = "futures do nothing until they are awaited"]
pub struct EndStopped(());

impl Future for EndStopped {
    type Output = NoReturn;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<NoReturn> {
        Frame::current(|frame| match frame {
            Some(frame) => frame.stop_itself(),
            None => outside_a_task("`stopped()`"),
        });
        Poll::Pending
    }
}
