//! A stream of hyper, as everybody else wants it.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, IoSlice};

use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBuf, Write};

/// A stream of hyper, such as an upgraded connection, with the traits of `futures-io`.
#[derive(Debug)]
pub struct FuturesStream<S> {
    stream: S,
}

impl<S> FuturesStream<S> {
    /// Wraps a stream.
    pub fn new(stream: S) -> Self {
        Self { stream }
    }

    /// Returns the stream.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Read + Unpin> AsyncRead for FuturesStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut target = ReadBuf::new(target);
        ready!(Pin::new(&mut self.stream).poll_read(cx, target.unfilled()))?;
        Poll::Ready(Ok(target.filled().len()))
    }
}

impl<S: Write + Unpin> AsyncWrite for FuturesStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
