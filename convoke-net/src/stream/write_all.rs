//! `write_all(&mut writer, &buffer)`: writes a whole buffer.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use futures_io::AsyncWrite;

use super::Progress;
use super::step::poll_step;

/// Writes the whole buffer.
///
/// - *Completes with* `()`; an error of the writer, or [`WriteZero`](io::ErrorKind::WriteZero) with the
///   number of bytes that were written; or stopped, as the writer is.
/// - *If dropped*, the beginning of the buffer may have been written, and [`progress`](WriteAll::progress)
///   tells how much.
/// - *Runs on* the current task.
///
/// ```
/// use convoke::io::{duplex, read_exact, write_all};
///
/// let context = convoke::driver::io_context()?;
/// let received = context.block_on(async {
///     let (mut near, mut far) = duplex(64);
///     write_all(&mut near, b"hello").await?;
///     let mut received = [0; 5];
///     read_exact(&mut far, &mut received).await?;
///     std::io::Result::Ok(received)
/// });
/// assert_eq!(&received.unwrap()?, b"hello");
/// # std::io::Result::Ok(())
/// ```
pub fn write_all<'a, W: AsyncWrite + Unpin + ?Sized>(writer: &'a mut W, buffer: &'a [u8]) -> WriteAll<'a, W> {
    WriteAll { writer, buffer, written: 0, progress: None }
}

/// The future of [`write_all()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct WriteAll<'a, W: ?Sized> {
    writer: &'a mut W,
    buffer: &'a [u8],
    written: usize,
    progress: Option<&'a Progress>,
}

impl<'a, W: ?Sized> WriteAll<'a, W> {
    /// Adds the number of bytes written to `progress`.
    pub fn progress(mut self, progress: &'a Progress) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteAll<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.written < this.buffer.len() {
            let (writer, rest) = (Pin::new(&mut *this.writer), &this.buffer[this.written..]);
            let written = ready!(poll_step(cx, |cx| writer.poll_write(cx, rest)))?;
            if written == 0 {
                return Poll::Ready(Err(write_zero(this.written, this.buffer.len())));
            }
            this.written += written;
            Progress::add(this.progress, written);
        }
        Poll::Ready(Ok(()))
    }
}

pub(crate) fn write_zero(written: usize, wanted: usize) -> io::Error {
    let message = format!("the stream accepted no more after {written} of {wanted} bytes");
    io::Error::new(io::ErrorKind::WriteZero, message)
}

impl<W: ?Sized> fmt::Debug for WriteAll<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteAll")
            .field("written", &self.written)
            .field("of", &self.buffer.len())
            .finish_non_exhaustive()
    }
}
