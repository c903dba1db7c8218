//! The version of HTTP that a client speaks: agreed on by TLS, or seen in its first bytes.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
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

/// A stream, and its first bytes that were read already.
pub(super) struct Prefixed<S> {
    stream: S,
    prefix: [u8; PREFACE.len()],
    /// The part of the prefix that is still to be read.
    unread: core::ops::Range<usize>,
}

impl<S: AsyncRead + Unpin> Prefixed<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, prefix: [0; PREFACE.len()], unread: 0..0 }
    }

    /// Reads until it is clear which protocol the client speaks; at most the preface of HTTP/2. Returns `None` if the
    /// client ends before that.
    pub(super) async fn detect(&mut self) -> io::Result<Option<Protocol>> {
        loop {
            let read = self.unread.end;
            if self.prefix[..read] != PREFACE[..read] {
                return Ok(Some(Protocol::Http1));
            }
            if read == PREFACE.len() {
                return Ok(Some(Protocol::Http2));
            }
            let (stream, rest) = (&mut self.stream, &mut self.prefix[read..]);
            match poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, rest)).await? {
                0 => return Ok(None),
                more => self.unread.end += more,
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, target);
        }
        let count = self.unread.len().min(target.len());
        let start = self.unread.start;
        target[..count].copy_from_slice(&self.prefix[start..start + count]);
        self.unread.start += count;
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
