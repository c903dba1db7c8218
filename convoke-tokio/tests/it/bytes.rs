//! `Compat`: streams with the other traits.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use convoke_tokio::{Compat, CompatExt};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

/// A stream of `futures_io` that records its calls.
#[derive(Default)]
struct Recorded {
    calls: Arc<Mutex<Vec<String>>>,
    input: &'static [u8],
}

impl Recorded {
    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

impl futures_io::AsyncRead for Recorded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let length = self.input.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.input[..length]);
        self.input = &self.input[length..];
        Poll::Ready(Ok(length))
    }
}

impl futures_io::AsyncWrite for Recorded {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.note(format!("write {}", bytes.len()));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.note(format!("write {} buffers", buffers.len()));
        Poll::Ready(Ok(buffers.iter().map(|buffer| buffer.len()).sum()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.note("flush".into());
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.note("close".into());
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_stream_of_ours_reads_and_writes_through_tokios_traits() {
    let stream = Recorded { input: b"first\nsecond", ..Recorded::default() };
    let calls = stream.calls.clone();
    let mut stream = stream.compat();
    assert!(tokio::io::AsyncWrite::is_write_vectored(&stream));
    stream.write_all(b"abc").await.unwrap();
    let written = stream.write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"cd")]).await.unwrap();
    assert_eq!(written, 4);
    stream.flush().await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(*calls.lock().unwrap(), ["write 3", "write 2 buffers", "flush", "close"]);
    let mut lines = tokio::io::BufReader::new(stream).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "first");
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "second");
    assert!(lines.next_line().await.unwrap().is_none());
}

/// A buffer that is filled in parts keeps what it has.
#[tokio::test]
async fn a_read_into_a_buffer_that_holds_bytes_adds_to_them() {
    let mut stream = Recorded { input: b"cdef", ..Recorded::default() }.compat();
    let mut buffer = Vec::with_capacity(4);
    buffer.extend_from_slice(b"ab");
    assert_eq!(stream.read_buf(&mut buffer).await.unwrap(), 2);
    assert_eq!(buffer, b"abcd");
    assert_eq!(stream.into_inner().input, b"ef");
}

struct Lies;

impl futures_io::AsyncRead for Lies {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buffer.len() + 1))
    }
}

#[tokio::test]
async fn a_stream_that_claims_to_have_read_too_much_is_an_error() {
    assert!(Lies.compat().read(&mut [0; 4]).await.is_err());
}

#[tokio::test]
async fn a_stream_of_tokios_reads_and_writes_through_our_traits() {
    let (near, far) = tokio::io::duplex(16);
    let (mut near, mut far): (Compat<_>, Compat<_>) = (near.compat(), far.compat());
    let sent = convoke_tokio::run(async move {
        convoke::io::write_all(&mut near, b"hello").await?;
        let written = std::future::poll_fn(|cx| {
            let buffers = [IoSlice::new(b", "), IoSlice::new(b"world")];
            futures_io::AsyncWrite::poll_write_vectored(Pin::new(&mut near), cx, &buffers)
        });
        assert_eq!(written.await?, 7);
        std::future::poll_fn(|cx| futures_io::AsyncWrite::poll_close(Pin::new(&mut near), cx)).await
    });
    sent.await.unwrap().unwrap();
    let mut received = Vec::new();
    let mut part = [0; 5];
    while let length @ 1.. =
        std::future::poll_fn(|cx| futures_io::AsyncRead::poll_read(Pin::new(&mut far), cx, &mut part))
            .await
            .unwrap()
    {
        received.extend_from_slice(&part[..length]);
    }
    assert_eq!(received, b"hello, world");
}
