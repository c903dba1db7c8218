//! `copy(&mut reader, &mut writer)`: copies all bytes of one stream into another.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;

use futures_io::{AsyncRead, AsyncWrite};

use super::Progress;
use super::idle::IdleLimit;
use super::step::poll_step;
use super::write_all::write_zero;

/// The size of the copy buffer in bytes.
pub const COPY_BYTES: usize = 16 * 1024;

/// Copies until the reader ends, then flushes the writer.
///
/// - *Completes with* the number of bytes; an error of the reader or the writer; or stopped, as they are.
/// - *If dropped* or stopped, bytes that were read but not written, at most [`COPY_BYTES`], are lost.
///   [`progress`](Copy::progress) tells how many were written.
/// - *Runs on* the current task.
///
/// ```
/// use convoke::io::{copy, duplex, read_exact, write_all};
///
/// let context = convoke::driver::io_context()?;
/// let copied = context.block_on(async {
///     let (mut input, mut reader) = duplex(64);
///     let (mut writer, mut output) = duplex(64);
///     write_all(&mut input, b"hello").await?;
///     drop(input); // `copy` ends with its reader.
///     let bytes = copy(&mut reader, &mut writer).await?;
///     let mut received = [0; 5];
///     read_exact(&mut output, &mut received).await?;
///     std::io::Result::Ok((bytes, received))
/// });
/// assert_eq!(copied.unwrap()?, (5, *b"hello"));
/// # std::io::Result::Ok(())
/// ```
pub fn copy<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> Copy<'a, R, W>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    Copy { reader, writer, copied: CopyBuffer::new(), progress: None, idle: IdleLimit::default() }
}

/// The future of [`copy()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Copy<'a, R: ?Sized, W: ?Sized> {
    reader: &'a mut R,
    writer: &'a mut W,
    copied: CopyBuffer,
    progress: Option<&'a Progress>,
    idle: IdleLimit,
}

impl<'a, R: ?Sized, W: ?Sized> Copy<'a, R, W> {
    /// Adds the number of bytes written to `progress`.
    pub fn progress(mut self, progress: &'a Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Limits the time without progress: the copy fails with [`TimedOut`](io::ErrorKind::TimedOut) when no
    /// byte was read or written for this long. By default there is no limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::io::{copy, duplex};
    /// use convoke::prelude::*;
    ///
    /// let error = block_on(async {
    ///     let ((_quiet, mut reader), (mut writer, _output)) = (duplex(64), duplex(64));
    ///     copy(&mut reader, &mut writer).idle_timeout(Duration::from_millis(1)).await
    /// });
    /// let error = error.unwrap().unwrap_err();
    /// assert_eq!(error.to_string(), "no bytes were transferred for 1ms");
    /// ```
    #[must_use = "futures do nothing until they are awaited"]
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.idle.set(limit);
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
        match this.poll_copy(cx) {
            Poll::Ready(copied) => Poll::Ready(copied),
            Poll::Pending => this.idle.poll(this.copied.moved, cx),
        }
    }
}

impl<R, W> Copy<'_, R, W>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    fn poll_copy(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        ready!(self.copied.poll_copy(&mut *self.reader, &mut *self.writer, self.progress, cx))?;
        ready!(Pin::new(&mut *self.writer).poll_flush(cx))?;
        Poll::Ready(Ok(self.copied.written))
    }
}

/// The buffer of a copy, and its bytes that were read and not written yet.
pub(super) struct CopyBuffer {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    has_ended: bool,
    pub(super) written: u64,
    /// The number of bytes that were read, plus that of bytes that were written.
    pub(super) moved: u64,
}

impl CopyBuffer {
    pub(super) fn new() -> Self {
        let buffer = vec![0; COPY_BYTES].into_boxed_slice();
        Self { buffer, start: 0, end: 0, has_ended: false, written: 0, moved: 0 }
    }

    /// Copies until the reader has ended and everything is written. Writes all bytes before it reads more,
    /// and flushes before it waits for the reader: the peer may wait for these bytes before it sends more.
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
                let rest = &self.buffer[self.start..self.end];
                let written = ready!(poll_step(cx, |cx| Pin::new(&mut *writer).poll_write(cx, rest)))?;
                if written == 0 {
                    return Poll::Ready(Err(write_zero(self.start, self.end)));
                }
                self.start += written;
                self.written += written as u64;
                self.moved += written as u64;
                Progress::add(progress, written);
            }
            if self.has_ended {
                return Poll::Ready(Ok(()));
            }
            match poll_step(cx, |cx| Pin::new(&mut *reader).poll_read(cx, &mut self.buffer))? {
                Poll::Ready(read) => {
                    (self.start, self.end, self.has_ended) = (0, read, read == 0);
                    self.moved += read as u64;
                }
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
        f.debug_struct("Copy").field("written", &self.copied.written).finish_non_exhaustive()
    }
}
