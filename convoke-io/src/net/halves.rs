//! The two halves of a connection: borrowed, or owned by two tasks.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;

use futures_io::{AsyncRead, AsyncWrite};

use super::kind::{Internet, Kind};
use super::poll_slot::PollSlot;
use super::socket_stream::{SocketStream, closed};
use super::stream_io::{FillBuffer, SendBuffer};

/// The half that reads, borrowed from a [`SocketStream`].
#[derive(Debug)]
pub struct ReadHalf<'a, K = Internet> {
    stream: &'a SocketStream<K>,
    slot: PollSlot,
}

/// The half that writes, borrowed from a [`SocketStream`].
#[derive(Debug)]
pub struct WriteHalf<'a, K = Internet> {
    stream: &'a SocketStream<K>,
    slot: PollSlot,
}

/// The half that reads, on its own.
#[derive(Debug)]
pub struct OwnedReadHalf<K = Internet> {
    /// Taken when the halves are put together again.
    stream: Option<Arc<SocketStream<K>>>,
    slot: PollSlot,
}

/// The half that writes, on its own. Dropping it ends its direction: the peer reads the end.
#[derive(Debug)]
pub struct OwnedWriteHalf<K: Kind = Internet> {
    /// Taken when the halves are put together again.
    stream: Option<Arc<SocketStream<K>>>,
    slot: PollSlot,
}

/// The two halves are not of the same connection. They are as they were.
pub struct ReuniteError<K: Kind>(pub OwnedReadHalf<K>, pub OwnedWriteHalf<K>);

impl<'a, K> ReadHalf<'a, K> {
    pub(super) fn new(stream: &'a SocketStream<K>) -> Self {
        Self { stream, slot: PollSlot::new() }
    }
}

impl<'a, K> WriteHalf<'a, K> {
    pub(super) fn new(stream: &'a SocketStream<K>) -> Self {
        Self { stream, slot: PollSlot::new() }
    }
}

impl<K: Kind> OwnedReadHalf<K> {
    pub(super) fn new(stream: Arc<SocketStream<K>>) -> Self {
        Self { stream: Some(stream), slot: PollSlot::new() }
    }

    fn stream(&self) -> &SocketStream<K> {
        whole(&self.stream)
    }

    /// As [`SocketStream::read`].
    #[track_caller]
    pub fn read<'a>(&'a self, buffer: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        self.stream().read(buffer)
    }

    /// As [`SocketStream::read_exact`].
    #[track_caller]
    pub fn read_exact<'a>(&'a self, buffer: &'a mut [u8]) -> FillBuffer<'a> {
        self.stream().read_exact(buffer)
    }

    /// Both halves together again.
    ///
    /// # Errors
    /// If they are not of the same connection.
    pub fn reunite(mut self, mut writes: OwnedWriteHalf<K>) -> Result<SocketStream<K>, ReuniteError<K>> {
        match (self.stream.take(), writes.stream.take()) {
            (Some(own), Some(other)) if Arc::ptr_eq(&own, &other) => {
                self.slot.let_go(&*own.source);
                writes.slot.let_go(&*own.source);
                drop(other);
                Ok(Arc::into_inner(own).expect("there are two halves, and both are here"))
            }
            (own, other) => {
                (self.stream, writes.stream) = (own, other);
                Err(ReuniteError(self, writes))
            }
        }
    }
}

impl<K: Kind> AsRef<SocketStream<K>> for OwnedReadHalf<K> {
    fn as_ref(&self) -> &SocketStream<K> {
        self.stream()
    }
}

impl<K: Kind> AsRef<SocketStream<K>> for OwnedWriteHalf<K> {
    fn as_ref(&self) -> &SocketStream<K> {
        self.stream()
    }
}

impl<K: Kind> OwnedWriteHalf<K> {
    pub(super) fn new(stream: Arc<SocketStream<K>>) -> Self {
        Self { stream: Some(stream), slot: PollSlot::new() }
    }

    fn stream(&self) -> &SocketStream<K> {
        whole(&self.stream)
    }

    /// As [`SocketStream::write`].
    #[track_caller]
    pub fn write<'a>(&'a self, buffer: &'a [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        self.stream().write(buffer)
    }

    /// As [`SocketStream::write_all`].
    #[track_caller]
    pub fn write_all<'a>(&'a self, buffer: &'a [u8]) -> SendBuffer<'a> {
        self.stream().write_all(buffer)
    }
}

fn whole<K>(stream: &Option<Arc<SocketStream<K>>>) -> &SocketStream<K> {
    stream.as_deref().expect("only taken by what consumes it")
}

impl<K: Kind> Drop for OwnedWriteHalf<K> {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            self.slot.let_go(&*stream.source);
            // If the connection is gone the peer knows.
            _ = stream.shutdown(Shutdown::Write);
        }
    }
}

impl<K> Drop for OwnedReadHalf<K> {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            self.slot.let_go(&*stream.source);
        }
    }
}

impl<K> Drop for ReadHalf<'_, K> {
    fn drop(&mut self) {
        self.slot.let_go(&*self.stream.source);
    }
}

impl<K> Drop for WriteHalf<'_, K> {
    fn drop(&mut self) {
        self.slot.let_go(&*self.stream.source);
    }
}

impl<K: Kind> ReadHalf<'_, K> {
    /// As [`SocketStream::read`].
    #[track_caller]
    pub fn read<'b>(&'b self, buffer: &'b mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'b {
        self.stream.read(buffer)
    }

    /// As [`SocketStream::read_exact`].
    #[track_caller]
    pub fn read_exact<'b>(&'b self, buffer: &'b mut [u8]) -> FillBuffer<'b> {
        self.stream.read_exact(buffer)
    }
}

impl<K: Kind> WriteHalf<'_, K> {
    /// As [`SocketStream::write`].
    #[track_caller]
    pub fn write<'b>(&'b self, buffer: &'b [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'b {
        self.stream.write(buffer)
    }

    /// As [`SocketStream::write_all`].
    #[track_caller]
    pub fn write_all<'b>(&'b self, buffer: &'b [u8]) -> SendBuffer<'b> {
        self.stream.write_all(buffer)
    }
}

impl<K: Kind> AsyncRead for ReadHalf<'_, K> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slot.poll_read(&*this.stream.source, cx, buffer)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slot.poll_read_vectored(&*this.stream.source, cx, buffers)
    }
}

impl<K: Kind> AsyncRead for OwnedReadHalf<K> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slot.poll_read(&*whole(&this.stream).source, cx, buffer)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slot.poll_read_vectored(&*whole(&this.stream).source, cx, buffers)
    }
}

impl<K: Kind> AsyncWrite for WriteHalf<'_, K> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slot.poll_write(&*this.stream.source, cx, buffer)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slot.poll_write_vectored(&*this.stream.source, cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(closed(self.stream.shutdown(Shutdown::Write)))
    }
}

impl<K: Kind> AsyncWrite for OwnedWriteHalf<K> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slot.poll_write(&*whole(&this.stream).source, cx, buffer)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slot.poll_write_vectored(&*whole(&this.stream).source, cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(closed(self.stream().shutdown(Shutdown::Write)))
    }
}

impl<K: Kind> fmt::Display for ReuniteError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the two halves are of different connections")
    }
}

impl<K: Kind> fmt::Debug for ReuniteError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReuniteError").field(&self.0).field(&self.1).finish()
    }
}

impl<K: Kind> std::error::Error for ReuniteError<K> {}
