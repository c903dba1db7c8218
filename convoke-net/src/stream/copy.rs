//! `copy(&mut reader, &mut writer)`: all bytes of one into the other.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use futures_io::{AsyncRead, AsyncWrite};

use super::Progress;
use super::write_all::took_no_more;

/// How much is carried at a time.
pub const COPY_BYTES: usize = 16 * 1024;

/// Copies until the reader ends, then flushes the writer.
///
/// - *Completes with* how much it was; an error of either side; stopped, as they are.
/// - *If dropped*, or stopped, what was read and not yet written, at most [`COPY_BYTES`], is lost;
///   [`progress`](Copy::progress) says how much was written.
/// - *Runs on* the task.
pub fn copy<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> Copy<'a, R, W>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    Copy { reader, writer, carried: Carried::new(), progress: None }
}

/// See [`copy()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Copy<'a, R: ?Sized, W: ?Sized> {
    reader: &'a mut R,
    writer: &'a mut W,
    carried: Carried,
    progress: Option<&'a Progress>,
}

impl<'a, R: ?Sized, W: ?Sized> Copy<'a, R, W> {
    /// Counts there how much was written.
    pub fn progress(mut self, progress: &'a Progress) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl<R, W> Future for Copy<'_, R, W>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    type Output = io::Result<u64>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let this = self.get_mut();
        ready!(this.carried.poll_copy(&mut *this.reader, &mut *this.writer, this.progress, cx))?;
        ready!(Pin::new(&mut *this.writer).poll_flush(cx))?;
        Poll::Ready(Ok(this.carried.written))
    }
}

/// What is on its way from one side to the other.
pub(super) struct Carried {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    has_ended: bool,
    pub(super) written: u64,
}

impl Carried {
    pub(super) fn new() -> Self {
        let buffer = vec![0; COPY_BYTES].into_boxed_slice();
        Self { buffer, start: 0, end: 0, has_ended: false, written: 0 }
    }

    /// Ready when the reader has ended and all of it was written. Writes what it has before it reads more, and flushes before it
    /// waits for more: the far side may wait for it.
    pub(super) fn poll_copy<R, W>(
        &mut self,
        reader: &mut R,
        writer: &mut W,
        progress: Option<&Progress>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        loop {
            while self.start < self.end {
                let written =
                    ready!(Pin::new(&mut *writer).poll_write(cx, &self.buffer[self.start..self.end]))?;
                if written == 0 {
                    return Poll::Ready(Err(took_no_more(self.start, self.end)));
                }
                self.start += written;
                self.written += written as u64;
                Progress::add(progress, written);
            }
            if self.has_ended {
                return Poll::Ready(Ok(()));
            }
            match Pin::new(&mut *reader).poll_read(cx, &mut self.buffer)? {
                Poll::Ready(read) => (self.start, self.end, self.has_ended) = (0, read, read == 0),
                Poll::Pending => {
                    ready!(Pin::new(&mut *writer).poll_flush(cx))?;
                    return Poll::Pending;
                }
            }
        }
    }
}

impl<R: ?Sized, W: ?Sized> fmt::Debug for Copy<'_, R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copy").field("written", &self.carried.written).finish_non_exhaustive()
    }
}
