//! `read_exact(&mut reader, &mut buffer)`: fills a buffer.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use futures_io::AsyncRead;

use super::Progress;
use super::step::poll_step;

/// Reads until the buffer is full.
///
/// - *Completes with* `()`; an error of the reader, or [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) with
///   the number of bytes that were read; or stopped, as the reader is.
/// - *If dropped*, the bytes that were read are in the buffer, and [`progress`](ReadExact::progress) tells
///   how many.
/// - *Runs on* the current task.
///
/// ```
/// use convoke::io::{duplex, read_exact, write_all};
///
/// let context = convoke::driver::io_context()?;
/// let error = context.block_on(async {
///     let (mut near, mut far) = duplex(64);
///     write_all(&mut near, b"five!").await?;
///     drop(near);
///     read_exact(&mut far, &mut [0; 8]).await
/// });
/// let error = error.unwrap().unwrap_err();
/// assert_eq!(error.to_string(), "the stream ended after 5 of 8 bytes");
/// # std::io::Result::Ok(())
/// ```
pub fn read_exact<'a, R: AsyncRead + Unpin + ?Sized>(
    reader: &'a mut R,
    buffer: &'a mut [u8],
) -> ReadExact<'a, R> {
    ReadExact { reader, buffer, filled: 0, progress: None }
}

/// The future of [`read_exact()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct ReadExact<'a, R: ?Sized> {
    reader: &'a mut R,
    buffer: &'a mut [u8],
    filled: usize,
    progress: Option<&'a Progress>,
}

impl<'a, R: ?Sized> ReadExact<'a, R> {
    /// Adds the number of bytes read to `progress`.
    pub fn progress(mut self, progress: &'a Progress) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadExact<'_, R> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.filled < this.buffer.len() {
            let (reader, rest) = (Pin::new(&mut *this.reader), &mut this.buffer[this.filled..]);
            let read = ready!(poll_step(cx, |cx| reader.poll_read(cx, rest)))?;
            if read == 0 {
                return Poll::Ready(Err(ended_early(this.filled, this.buffer.len())));
            }
            this.filled += read;
            Progress::add(this.progress, read);
        }
        Poll::Ready(Ok(()))
    }
}

pub(crate) fn ended_early(filled: usize, wanted: usize) -> io::Error {
    let message = format!("the stream ended after {filled} of {wanted} bytes");
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}

impl<R: ?Sized> fmt::Debug for ReadExact<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadExact")
            .field("filled", &self.filled)
            .field("of", &self.buffer.len())
            .finish_non_exhaustive()
    }
}
