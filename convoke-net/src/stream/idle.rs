//! `IdleLimit`: the time that a copy may wait while no byte moves.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;

use convoke_exec::time::{Sleeping, sleep};

/// The limit of the time without progress. Without a limit it is empty, and never over.
#[derive(Default)]
pub(super) struct IdleLimit(Option<Limited>);

struct Limited {
    limit: Duration,
    /// The number of bytes that had moved when the timer was set.
    moved: u64,
    /// Allocated at the first wait, and then reused.
    timer: Option<Pin<Box<Sleeping>>>,
}

impl IdleLimit {
    pub(super) fn set(&mut self, limit: Duration) {
        self.0 = Some(Limited { limit, moved: 0, timer: None });
    }

    /// Polls the timer of a copy that waits, after `moved` bytes in total. Completes with the error when no
    /// byte has moved for the whole limit.
    pub(super) fn poll<T>(&mut self, moved: u64, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let Some(Limited { limit, moved: before, timer }) = &mut self.0 else { return Poll::Pending };
        let timer = match timer {
            Some(timer) if *before == moved => timer,
            Some(timer) => {
                timer.set(sleep(*limit).into_future());
                timer
            }
            None => timer.insert(Box::pin(sleep(*limit).into_future())),
        };
        *before = moved;
        timer.as_mut().poll(cx).map(|()| Err(idle(*limit)))
    }
}

#[cold]
fn idle(limit: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no bytes were transferred for {limit:?}"))
}

impl fmt::Debug for IdleLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdleLimit").field(&self.0.as_ref().map(|limited| limited.limit)).finish()
    }
}
