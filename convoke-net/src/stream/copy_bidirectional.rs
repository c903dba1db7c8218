//! `copy_bidirectional(&mut a, &mut b)`: what a proxy does.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use futures_io::{AsyncRead, AsyncWrite};

use super::Progress;
use super::copy::Carried;

/// Copies both ways at once. When one side ends, the other's writing half is closed, as the first had closed its own; it is over
/// when both have ended.
///
/// - *Completes with* how much went from `a` to `b`, and from `b` to `a`; the first error of either side; stopped, as they are.
/// - *If dropped*, or stopped, what was read and not yet written is lost; [`progress`](CopyBidirectional::progress) says how much
///   was written.
/// - *Runs on* the task.
pub fn copy_bidirectional<'a, A, B>(a: &'a mut A, b: &'a mut B) -> CopyBidirectional<'a, A, B>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    CopyBidirectional { a, b, there: Way::new(), back: Way::new() }
}

/// See [`copy_bidirectional()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct CopyBidirectional<'a, A: ?Sized, B: ?Sized> {
    a: &'a mut A,
    b: &'a mut B,
    there: Way<'a>,
    back: Way<'a>,
}

impl<'a, A: ?Sized, B: ?Sized> CopyBidirectional<'a, A, B> {
    /// Counts how much was written to `b`, and how much to `a`.
    pub fn progress(mut self, there: &'a Progress, back: &'a Progress) -> Self {
        self.there.progress = Some(there);
        self.back.progress = Some(back);
        self
    }
}

/// One of the two ways.
struct Way<'a> {
    carried: Carried,
    progress: Option<&'a Progress>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Copies,
    Closes,
    Done,
}

impl Way<'_> {
    fn new() -> Self {
        Self { carried: Carried::new(), progress: None, stage: Stage::Copies }
    }

    fn poll<R, W>(&mut self, reader: &mut R, writer: &mut W, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        if self.stage == Stage::Copies {
            ready!(self.carried.poll_copy(reader, writer, self.progress, cx))?;
            self.stage = Stage::Closes;
        }
        if self.stage == Stage::Closes {
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
        let there = this.there.poll(&mut *this.a, &mut *this.b, cx)?;
        let back = this.back.poll(&mut *this.b, &mut *this.a, cx)?;
        match (there, back) {
            (Poll::Ready(()), Poll::Ready(())) => {
                Poll::Ready(Ok((this.there.carried.written, this.back.carried.written)))
            }
            _ => Poll::Pending,
        }
    }
}

impl<A: ?Sized, B: ?Sized> fmt::Debug for CopyBidirectional<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyBidirectional")
            .field("there", &self.there.carried.written)
            .field("back", &self.back.carried.written)
            .finish_non_exhaustive()
    }
}
