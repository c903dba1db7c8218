//! A stream of `futures-io`, as hyper wants it.

use core::cell::Cell;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice};

use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBufCursor, Write};

/// The number of bytes that one read takes at most.
const SCRATCH_BYTES: usize = 16 * 1024;

/// The number of bytes up to which several buffers are written as one.
const SMALL_WRITE_BYTES: usize = 512;

thread_local! {
    /// The buffer that reads of this thread go through. It is taken while it is used.
    static SCRATCH: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}

/// A stream of `futures-io` with the traits of hyper.
///
/// Hyper reads into memory that is not initialised, and `futures-io` into memory that is. Bytes go through a buffer of
/// the thread, so that no memory is cleared for each read, and an idle connection has no buffer here.
#[derive(Debug)]
pub struct HyperIo<S> {
    stream: S,
    vectored: bool,
}

impl<S> HyperIo<S> {
    /// Wraps a stream.
    pub fn new(stream: S) -> Self {
        Self { stream, vectored: false }
    }

    /// Sets whether the stream writes several buffers at once, as sockets and TLS streams of Convoke do. Hyper then
    /// hands it the head and the body of a message without a copy. Default: false, since the traits of `futures-io` cannot
    /// say.
    #[must_use]
    pub fn vectored(mut self, vectored: bool) -> Self {
        self.vectored = vectored;
        self
    }

    /// Returns the stream.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> Read for HyperIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut target: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut scratch = SCRATCH.take().unwrap_or_else(|| vec![0; SCRATCH_BYTES].into_boxed_slice());
        let length = target.remaining().min(SCRATCH_BYTES);
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut scratch[..length]);
        if let Poll::Ready(Ok(count)) = read {
            target.put_slice(&scratch[..count]);
        }
        SCRATCH.set(Some(scratch));
        read.map_ok(drop)
    }
}

impl<S: AsyncWrite + Unpin> Write for HyperIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.vectored
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let total: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        if total > SMALL_WRITE_BYTES {
            return Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        }
        // The kernel takes one buffer faster than several: more so than a small copy costs.
        let mut bytes = [0; SMALL_WRITE_BYTES];
        let mut length = 0;
        for buffer in buffers {
            bytes[length..length + buffer.len()].copy_from_slice(buffer);
            length += buffer.len();
        }
        Pin::new(&mut self.stream).poll_write(cx, &bytes[..length])
    }
}
