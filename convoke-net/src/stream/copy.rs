//! `copy(&mut reader, &mut writer)`: copies all bytes of one stream into another.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use futures_io::{AsyncRead, AsyncWrite};

use super::Progress;
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
/// let copied = context.run_until(async {
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
    Copy { reader, writer, copied: CopyBuffer::new(), progress: None }
}

/// The future of [`copy()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Copy<'a, R: ?Sized, W: ?Sized> {
    reader: &'a mut R,
    writer: &'a mut W,
    copied: CopyBuffer,
    progress: Option<&'a Progress>,
}

impl<'a, R: ?Sized, W: ?Sized> Copy<'a, R, W> {
    /// Adds the number of bytes written to `progress`.
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
        ready!(this.copied.poll_copy(&mut *this.reader, &mut *this.writer, this.progress, cx))?;
        ready!(Pin::new(&mut *this.writer).poll_flush(cx))?;
        Poll::Ready(Ok(this.copied.written))
    }
}

/// The buffer of a copy, and its bytes that were read and not written yet.
pub(super) struct CopyBuffer {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    has_ended: bool,
    pub(super) written: u64,
}

impl CopyBuffer {
    pub(super) fn new() -> Self {
        let buffer = vec![0; COPY_BYTES].into_boxed_slice();
        Self { buffer, start: 0, end: 0, has_ended: false, written: 0 }
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
                let written =
                    ready!(Pin::new(&mut *writer).poll_write(cx, &self.buffer[self.start..self.end]))?;
                if written == 0 {
                    return Poll::Ready(Err(write_zero(self.start, self.end)));
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
        f.debug_struct("Copy").field("written", &self.copied.written).finish_non_exhaustive()
    }
}
