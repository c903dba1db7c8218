//! The lingering close: a connection is closed so that what was written to it is delivered.
//!
//! A kernel that closes a connection with unread input, or receives more input afterwards, resets it. A reset
//! destroys the bytes that the peer has not received yet. So the write side is shut down first, which sends
//! the end of the stream; input is read and discarded until the peer ends too; and only then is the
//! connection closed. A peer that does not end must not hold the connection for ever: [`Linger`] has the
//! limits.

use core::future::{IntoFuture, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;

use convoke_exec::time::{now, sleep};
use futures_io::{AsyncRead, AsyncWrite};

/// The default limit of the time that a lingering close takes.
pub const LINGER_TIME: Duration = Duration::from_secs(10);

/// The default limit of the time that a lingering close waits for a peer that sends nothing. Such a peer has
/// mostly received everything: a close without unread input does not reset the connection, and the kernel
/// delivers the rest.
pub const LINGER_IDLE: Duration = Duration::from_secs(1);

/// The default limit of the bytes that a lingering close discards. It is larger than the receive buffers of
/// common kernels, so that input which is on its way when the close begins fits.
pub const LINGER_BYTES: u64 = 16 << 20;

/// The size of the buffer that discarded bytes are read into. It lies on the stack, and in no future.
const DISCARD_BYTES: usize = 8 << 10;

/// The limits of a lingering close: [`lingering_close()`], [`Closing`](super::Closing) and
/// [`using`](convoke_task::using()) a socket.
///
/// It is not the socket option SO_LINGER ([`SocketOption::Linger`](crate::net::SocketOption::Linger)), which
/// makes the kernel's close wait for unsent bytes, and does not read.
///
/// ```
/// use std::time::Duration;
/// use convoke::io::Linger;
///
/// let short = Linger::new().time(Duration::from_secs(2)).bytes(1 << 20);
/// assert_ne!(short, Linger::new());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linger {
    time: Duration,
    idle: Duration,
    bytes: u64,
}

impl Linger {
    /// Creates the default limits: [`LINGER_TIME`], [`LINGER_IDLE`] and [`LINGER_BYTES`].
    pub const fn new() -> Self {
        Self { time: LINGER_TIME, idle: LINGER_IDLE, bytes: LINGER_BYTES }
    }

    /// Creates limits of zero: the write side is shut down, nothing is read, and the connection is closed.
    /// Unread input then resets it.
    pub const fn none() -> Self {
        Self { time: Duration::ZERO, idle: Duration::ZERO, bytes: 0 }
    }

    /// Sets the limit of the whole time.
    #[must_use]
    pub const fn time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Sets the limit of the time without input.
    #[must_use]
    pub const fn idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// Sets the limit of the bytes that are discarded.
    #[must_use]
    pub const fn bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }
}

impl Default for Linger {
    fn default() -> Self {
        Self::new()
    }
}

/// Closes a stream so that what was written to it is delivered: flushes and ends the write side, then reads
/// and discards input until the peer ends, or until a limit is reached. Drop the stream afterwards.
///
/// - *Completes with* `()`, also if a limit was reached or the peer has reset the connection; an error of
///   the stream, if its write side cannot be closed; or stopped, as the stream is.
/// - *If dropped*, the write side may be closed or not.
/// - *Runs on* the current task.
///
/// ```
/// use convoke::io::{Linger, duplex, lingering_close, write_all};
/// use convoke::prelude::*;
///
/// let closed = block_on(async {
///     let (mut near, mut far) = duplex(64);
///     write_all(&mut far, b"nobody reads this").await?;
///     drop(far); // The peer has ended, so there is nothing to wait for.
///     lingering_close(&mut near, Linger::new()).await
/// });
/// closed.unwrap().unwrap();
/// ```
pub async fn lingering_close<S>(stream: &mut S, linger: Linger) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    poll_fn(|cx| Pin::new(&mut *stream).poll_close(cx)).await?;
    discard(linger, |cx, buffer| Pin::new(&mut *stream).poll_read(cx, buffer)).await;
    Ok(())
}

/// Reads with `poll_read` and discards, until the end of the stream, an error, or a limit.
pub(crate) async fn discard(
    linger: Linger,
    mut poll_read: impl FnMut(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
) {
    let mut bytes = linger.bytes;
    if linger.time.is_zero() || bytes == 0 {
        return;
    }
    let start = now();
    loop {
        let left = linger.time.saturating_sub(now().saturating_duration_since(start));
        let mut timer = pin!(sleep(left.min(linger.idle)).into_future());
        // The stream is polled first: input that is already there does not arm the timer.
        let read = poll_fn(|cx| match poll_read(cx, &mut [0; DISCARD_BYTES]) {
            Poll::Ready(read) => Poll::Ready(read.ok()),
            Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
        });
        match read.await {
            None | Some(0) => return,
            Some(read) => bytes = bytes.saturating_sub(read as u64),
        }
        if bytes == 0 || now().saturating_duration_since(start) >= linger.time {
            return;
        }
    }
}
