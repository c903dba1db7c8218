//! The pause between two attempts. Other tasks run in between, also if its length is zero.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use pin_project_lite::pin_project;

use crate::flow::{Checkpoint, checkpoint};
use convoke_exec::time::{Sleeping, sleep};

pin_project! {
    /// Future of [`pause`].
    #[project = PauseProjection]
    pub(crate) enum Pause {
        None { #[pin] checkpoint: Checkpoint },
        Some { #[pin] sleeping: Sleeping },
    }
}

/// Waits for `duration`, and lets other tasks run. A sleep of zero does not suspend its task: attempts that
/// fail at once would follow each other in one poll, in which a stop request is not seen.
pub(crate) fn pause(duration: Duration) -> Pause {
    if duration.is_zero() {
        Pause::None { checkpoint: checkpoint() }
    } else {
        Pause::Some { sleeping: sleep(duration).into_future() }
    }
}

impl Future for Pause {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.project() {
            PauseProjection::None { checkpoint } => checkpoint.poll(cx),
            PauseProjection::Some { sleeping } => sleeping.poll(cx),
        }
    }
}
