//! Bytes both ways: streams with the traits of `futures_io`, as tokio's, and the other way round. No byte is
//! copied.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, IoSlice};

use pin_project_lite::pin_project;
use tokio::io::ReadBuf;

pin_project! {
    /// A stream with the other traits of asynchronous bytes: one with those of [`futures_io`], as Convoke's are,
    /// has tokio's through it; one with [tokio's](tokio::io::AsyncRead) has those of `futures_io`.
    ///
    /// Nothing is copied, and several buffers are written in one call where the stream below does so. `close` and
    /// `shutdown` are one thing. [`compat`](CompatExt::compat) makes one of any stream.
    ///
    /// ```
    /// use std::io;
    /// use convoke_tokio::CompatExt;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// // For a crate that wants tokio's traits: a stream of Convoke's.
    /// async fn greet(client: convoke::net::TcpStream) -> io::Result<String> {
    ///     let mut client = client.compat();
    ///     client.write_all(b"hello\n").await?;
    ///     client.shutdown().await?;
    ///     let mut answer = String::new();
    ///     client.read_to_string(&mut answer).await?;
    ///     Ok(answer)
    /// }
    ///
    /// // For a function of Convoke's: a stream of tokio's.
    /// async fn send(server: tokio::net::TcpStream) -> io::Result<()> {
    ///     convoke::io::write_all(&mut server.compat(), b"hello\n").await
    /// }
    /// ```
    pub struct Compat<S> {
        #[pin]
        stream: S,
    }
}

/// The method [`compat`](CompatExt::compat) of every stream.
pub trait CompatExt: Sized {
    /// Gives the stream the other traits of asynchronous bytes: see [`Compat`].
    fn compat(self) -> Compat<Self> {
        Compat { stream: self }
    }
}

impl<S> CompatExt for S {}

impl<S> Compat<S> {
    /// Returns the stream below.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Returns the stream below, to be changed.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns the stream below. Nothing is buffered here, so nothing is lost.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: futures_io::AsyncRead> tokio::io::AsyncRead for Compat<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Zeroes bytes that were never written. A buffer that is used again has none.
        let read = ready!(self.project().stream.poll_read(cx, buffer.initialize_unfilled()))?;
        if read > buffer.remaining() {
            return Poll::Ready(Err(io::Error::other("a stream has read more than its buffer holds")));
        }
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: futures_io::AsyncBufRead> tokio::io::AsyncBufRead for Compat<S> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.project().stream.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, length: usize) {
        self.project().stream.consume(length);
    }
}

impl<S: futures_io::AsyncWrite> tokio::io::AsyncWrite for Compat<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write_vectored(cx, buffers)
    }

    /// Returns true. The traits of `futures_io` do not tell; a stream without such a call writes the first buffer.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_close(cx)
    }
}

impl<S: tokio::io::AsyncRead> futures_io::AsyncRead for Compat<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(bytes);
        ready!(self.project().stream.poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl<S: tokio::io::AsyncBufRead> futures_io::AsyncBufRead for Compat<S> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.project().stream.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, length: usize) {
        self.project().stream.consume(length);
    }
}

impl<S: tokio::io::AsyncWrite> futures_io::AsyncWrite for Compat<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write_vectored(cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(cx)
    }
}

impl<S: fmt::Debug> fmt::Debug for Compat<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compat").field(&self.stream).finish()
    }
}
