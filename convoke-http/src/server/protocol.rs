//! The version of HTTP that a client speaks: agreed on by TLS, or seen in its first bytes.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, IoSlice};

use futures_io::{AsyncRead, AsyncWrite};

/// The first bytes of a client that speaks HTTP/2.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A version of HTTP, as far as the connection differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// The result of a handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    pub(super) protocol: Option<Protocol>,
    pub(super) is_encrypted: bool,
}

impl Protocol {
    /// Returns the protocol that both sides have agreed on by ALPN, if it is one of ours.
    #[cfg(feature = "tls")]
    pub(super) fn of_alpn(name: Option<&[u8]>) -> Option<Self> {
        match name? {
            b"h2" => Some(Self::Http2),
            b"http/1.1" => Some(Self::Http1),
            _ => None,
        }
    }
}

/// The number of bytes that a read takes whose bytes are stored. The heads of most requests are shorter.
const PREFIX_BYTES: usize = 1024;

/// A stream, and bytes that were read from it before they were asked for.
pub(super) struct Prefixed<S> {
    stream: S,
    /// They are read from the start. Empty, and without memory, after all of them were read.
    prefix: Vec<u8>,
    start: usize,
}

impl<S: AsyncRead + Unpin> Prefixed<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, prefix: Vec::new(), start: 0 }
    }

    /// Reads until it is clear which protocol the client speaks. Returns `None` if the client ends before that.
    pub(super) async fn detect(&mut self) -> io::Result<Option<Protocol>> {
        loop {
            let read = self.prefix.len().min(PREFACE.len());
            if self.prefix[..read] != PREFACE[..read] {
                return Ok(Some(Protocol::Http1));
            }
            if read == PREFACE.len() {
                return Ok(Some(Protocol::Http2));
            }
            if poll_fn(|cx| self.poll_fill(cx)).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads more bytes, and stores them to be read later. Returns their number, zero at the end of the stream.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // On the stack: a task that waits in here stores nothing.
        let mut bytes = [0; PREFIX_BYTES];
        let count = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut bytes))?;
        self.prefix.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    /// Stores bytes that were read and not used, to be read again before all others.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.prefix.splice(..self.start, bytes.iter().copied());
            self.start = 0;
        }
    }

    /// Returns true if there are bytes to be read that need no wait.
    pub(super) fn has_unread(&self) -> bool {
        self.start < self.prefix.len()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if !self.has_unread() {
            return Pin::new(&mut self.stream).poll_read(cx, target);
        }
        let rest = &self.prefix[self.start..];
        let count = rest.len().min(target.len());
        target[..count].copy_from_slice(&rest[..count]);
        self.start += count;
        if !self.has_unread() {
            (self.prefix, self.start) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(count))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
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
        Pin::new(&mut self.stream).poll_close(cx)
    }
}
