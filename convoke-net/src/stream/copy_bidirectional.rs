//! `copy_bidirectional(&mut a, &mut b)`: copies in both directions, as a proxy does.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;

use futures_io::{AsyncRead, AsyncWrite};

use super::Progress;
use super::copy::CopyBuffer;
use super::idle::IdleLimit;

/// Copies in both directions at once. When one stream ends, the write half of the other is closed. The copy
/// ends when both have ended.
///
/// - *Completes with* the number of bytes from `a` to `b`, and from `b` to `a`; the first error of either
///   stream; or stopped, as they are.
/// - *If dropped* or stopped, bytes that were read but not written are lost.
///   [`progress`](CopyBidirectional::progress) tells how many were written.
/// - *Runs on* the current task.
///
/// ```
/// use convoke::net::TcpStream;
/// use convoke::io::copy_bidirectional;
///
/// async fn proxy(mut client: TcpStream, server: &str) -> std::io::Result<()> {
///     let mut server = TcpStream::connect(server).await?;
///     let (sent, received) = copy_bidirectional(&mut client, &mut server).await?;
///     println!("{sent} bytes sent, {received} bytes received");
///     Ok(())
/// }
/// ```
pub fn copy_bidirectional<'a, A, B>(a: &'a mut A, b: &'a mut B) -> CopyBidirectional<'a, A, B>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    CopyBidirectional {
        a,
        b,
        there: OneWay::new(),
        back: OneWay::new(),
        back_first: false,
        idle: IdleLimit::default(),
    }
}

/// The future of [`copy_bidirectional()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct CopyBidirectional<'a, A: ?Sized, B: ?Sized> {
    a: &'a mut A,
    b: &'a mut B,
    there: OneWay<'a>,
    back: OneWay<'a>,
    /// Changes with each poll: the direction that is polled first can use up the budget of the task.
    back_first: bool,
    idle: IdleLimit,
}

impl<'a, A: ?Sized, B: ?Sized> CopyBidirectional<'a, A, B> {
    /// Adds the number of bytes written to `b` to `there`, and of those written to `a` to `back`.
    pub fn progress(mut self, there: &'a Progress, back: &'a Progress) -> Self {
        self.there.progress = Some(there);
        self.back.progress = Some(back);
        self
    }

    /// Limits the time without progress: the copy fails with [`TimedOut`](io::ErrorKind::TimedOut) when no
    /// byte was read or written, in either direction, for this long. By default there is no limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::io::copy_bidirectional;
    /// use convoke::net::TcpStream;
    ///
    /// async fn proxy(mut client: TcpStream, mut server: TcpStream) -> std::io::Result<()> {
    ///     let copied = copy_bidirectional(&mut client, &mut server);
    ///     copied.idle_timeout(Duration::from_secs(60)).await.map(drop)
    /// }
    /// ```
    #[must_use = "futures do nothing until they are awaited"]
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.idle.set(limit);
        self
    }
}

/// One direction of the copy.
struct OneWay<'a> {
    copied: CopyBuffer,
    progress: Option<&'a Progress>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Copying,
    Closing,
    Done,
}

impl OneWay<'_> {
    fn new() -> Self {
        Self { copied: CopyBuffer::new(), progress: None, stage: Stage::Copying }
    }

    fn poll<R, W>(&mut self, reader: &mut R, writer: &mut W, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        if self.stage == Stage::Copying {
            ready!(self.copied.poll_copy(reader, writer, self.progress, cx))?;
            self.stage = Stage::Closing;
        }
        if self.stage == Stage::Closing {
            ready!(Pin::new(writer).poll_close(cx))?;
            self.stage = Stage::Done;
        }
        Poll::Ready(Ok(()))
    }
}

impl<A, B> Future for CopyBidirectional<'_, A, B>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    type Output = io::Result<(u64, u64)>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<(u64, u64)>> {
        let this = self.get_mut();
        let (mut there, mut back) = (Poll::Pending, Poll::Pending);
        for turn in [false, true] {
            if turn == this.back_first {
                there = this.there.poll(&mut *this.a, &mut *this.b, cx)?;
            } else {
                back = this.back.poll(&mut *this.b, &mut *this.a, cx)?;
            }
        }
        this.back_first = !this.back_first;
        match (there, back) {
            (Poll::Ready(()), Poll::Ready(())) => {
                Poll::Ready(Ok((this.there.copied.written, this.back.copied.written)))
            }
            _ => {
                let moved = this.there.copied.moved + this.back.copied.moved;
                this.idle.poll(moved, cx)
            }
        }
    }
}

impl<A: ?Sized, B: ?Sized> fmt::Debug for CopyBidirectional<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyBidirectional")
            .field("there", &self.there.copied.written)
            .field("back", &self.back.copied.written)
            .finish_non_exhaustive()
    }
}
