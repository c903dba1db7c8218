//! `write_all(&mut writer, &buffer)`: writes a whole buffer.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use futures_io::AsyncWrite;

use super::Progress;

/// Writes until all of the buffer was taken.
///
/// - *Completes with* nothing in particular; an error of the writer, or [`WriteZero`](io::ErrorKind::WriteZero) that says how
///   much was taken; stopped, as the writer is.
/// - *If dropped*, the beginning of the buffer may have been written, and [`progress`](WriteAll::progress) says how much.
/// - *Runs on* the task.
pub fn write_all<'a, W: AsyncWrite + Unpin + ?Sized>(writer: &'a mut W, buffer: &'a [u8]) -> WriteAll<'a, W> {
    WriteAll { writer, buffer, written: 0, progress: None }
}

/// See [`write_all()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct WriteAll<'a, W: ?Sized> {
    writer: &'a mut W,
    buffer: &'a [u8],
    written: usize,
    progress: Option<&'a Progress>,
}

impl<'a, W: ?Sized> WriteAll<'a, W> {
    /// Counts there how much was written.
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
            let written = ready!(Pin::new(&mut *this.writer).poll_write(cx, &this.buffer[this.written..]))?;
            if written == 0 {
                return Poll::Ready(Err(took_no_more(this.written, this.buffer.len())));
            }
            this.written += written;
            Progress::add(this.progress, written);
        }
        Poll::Ready(Ok(()))
    }
}

pub(crate) fn took_no_more(written: usize, wanted: usize) -> io::Error {
    let message = format!("the stream took no more after {written} of {wanted} bytes");
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
