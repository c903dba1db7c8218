//! The read half and the write half of a connection: borrowed, or owned by two tasks.

use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;

use futures_io::{AsyncRead, AsyncWrite};

use super::closing::closed;
use super::kind::{Internet, Kind};
use super::poll_slot::PollSlot;
use super::socket_stream::SocketStream;
use super::stream_io::{FillBuffer, SendBuffer};

/// The read half of a [`SocketStream`], borrowed.
pub type ReadHalf<'a, K = Internet> = Reads<&'a SocketStream<K>>;

/// The write half of a [`SocketStream`], borrowed.
pub type WriteHalf<'a, K = Internet> = Writes<&'a SocketStream<K>>;

/// The read half of a [`SocketStream`], owned.
pub type OwnedReadHalf<K = Internet> = Reads<Arc<SocketStream<K>>>;

/// The write half of a [`SocketStream`], owned. Dropping it shuts down its direction: the peer reads the end
/// of the stream.
pub type OwnedWriteHalf<K = Internet> = Writes<Arc<SocketStream<K>>>;

/// The read half of a connection: a [`ReadHalf`] or an [`OwnedReadHalf`], depending on `S`.
#[derive(Debug)]
pub struct Reads<S: HoldsStream> {
    /// `None` only while the halves are reunited.
    stream: Option<S>,
    slot: PollSlot,
}

/// The write half of a connection: a [`WriteHalf`] or an [`OwnedWriteHalf`], depending on `S`.
#[derive(Debug)]
pub struct Writes<S: HoldsStream> {
    /// `None` only while the halves are reunited.
    stream: Option<S>,
    slot: PollSlot,
}

/// The error of [`reunite`](Reads::reunite) for halves of different connections. It returns both unchanged.
pub struct ReuniteError<K: Kind>(pub OwnedReadHalf<K>, pub OwnedWriteHalf<K>);

/// A reference to a connection: borrowed, or shared with the other half.
pub trait HoldsStream: Deref<Target = SocketStream<Self::Kind>> + Unpin + sealed::Sealed {
    /// The kind of socket.
    type Kind: Kind;

    #[doc(hidden)]
    const WRITE_ENDS_WITH_ITS_HALF: bool;
}

impl<K: Kind> HoldsStream for &SocketStream<K> {
    type Kind = K;
    const WRITE_ENDS_WITH_ITS_HALF: bool = false;
}

impl<K: Kind> HoldsStream for Arc<SocketStream<K>> {
    type Kind = K;
    const WRITE_ENDS_WITH_ITS_HALF: bool = true;
}

mod sealed {
    pub trait Sealed {}

    impl<K> Sealed for &super::SocketStream<K> {}
    impl<K> Sealed for super::Arc<super::SocketStream<K>> {}
}

impl<S: HoldsStream> Reads<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream: Some(stream), slot: PollSlot::new() }
    }

    /// Reads the available bytes: see [`SocketStream::read`].
    ///
    /// - *Completes with* the number of bytes, zero at the end of the stream; an error of the connection; or
    ///   stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::OwnedReadHalf;
    ///
    /// async fn some(half: &OwnedReadHalf) -> std::io::Result<usize> {
    ///     half.read(&mut [0; 512]).await
    /// }
    /// ```
    #[track_caller]
    pub fn read<'a>(&'a self, buffer: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        whole(&self.stream).read(buffer)
    }

    /// Reads the available bytes to the end of a vector: see [`SocketStream::read_buf`].
    ///
    /// - *Completes with* the number of bytes, zero at the end of the stream; an error of the connection; or
    ///   stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::OwnedReadHalf;
    ///
    /// async fn some(half: &OwnedReadHalf) -> std::io::Result<Vec<u8>> {
    ///     let mut bytes = Vec::new();
    ///     half.read_buf(&mut bytes).await?;
    ///     Ok(bytes)
    /// }
    /// ```
    #[track_caller]
    pub fn read_buf<'a>(
        &'a self,
        buffer: &'a mut Vec<u8>,
    ) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        whole(&self.stream).read_buf(buffer)
    }

    /// Reads until the buffer is full: see [`SocketStream::read_exact`].
    ///
    /// - *Completes with* `()`; an error; or stopped.
    /// - *If dropped* or stopped, the bytes that were read are in the buffer.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::OwnedReadHalf;
    ///
    /// async fn word(half: &OwnedReadHalf) -> std::io::Result<[u8; 4]> {
    ///     let mut word = [0; 4];
    ///     half.read_exact(&mut word).await?;
    ///     Ok(word)
    /// }
    /// ```
    #[track_caller]
    pub fn read_exact<'a>(&'a self, buffer: &'a mut [u8]) -> FillBuffer<'a> {
        whole(&self.stream).read_exact(buffer)
    }
}

impl<S: HoldsStream> Writes<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream: Some(stream), slot: PollSlot::new() }
    }

    /// Writes as many bytes as fit: see [`SocketStream::write`].
    ///
    /// - *Completes with* the number of bytes; an error of the connection; or stopped.
    /// - *If dropped*, nothing was written.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::OwnedWriteHalf;
    ///
    /// async fn some(half: &OwnedWriteHalf) -> std::io::Result<usize> {
    ///     half.write(b"word").await
    /// }
    /// ```
    #[track_caller]
    pub fn write<'a>(&'a self, buffer: &'a [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        whole(&self.stream).write(buffer)
    }

    /// Writes the whole buffer: see [`SocketStream::write_all`].
    ///
    /// - *Completes with* `()`; an error; or stopped.
    /// - *If dropped* or stopped, the beginning of the buffer may have been written.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::OwnedWriteHalf;
    ///
    /// async fn greet(half: &OwnedWriteHalf) -> std::io::Result<()> {
    ///     half.write_all(b"hello").await
    /// }
    /// ```
    #[track_caller]
    pub fn write_all<'a>(&'a self, buffer: &'a [u8]) -> SendBuffer<'a> {
        whole(&self.stream).write_all(buffer)
    }
}

impl<K: Kind> OwnedReadHalf<K> {
    /// Reunites both halves.
    ///
    /// # Errors
    /// Fails if they are halves of different connections.
    pub fn reunite(mut self, mut writes: OwnedWriteHalf<K>) -> Result<SocketStream<K>, ReuniteError<K>> {
        match (self.stream.take(), writes.stream.take()) {
            (Some(own), Some(other)) if Arc::ptr_eq(&own, &other) => {
                self.slot.release(&*own.source);
                writes.slot.release(&*own.source);
                drop(other);
                Ok(Arc::into_inner(own).expect("the two halves hold the only references"))
            }
            (own, other) => {
                (self.stream, writes.stream) = (own, other);
                Err(ReuniteError(self, writes))
            }
        }
    }
}

fn whole<S: HoldsStream>(stream: &Option<S>) -> &SocketStream<S::Kind> {
    stream.as_deref().expect("only `reunite` takes it, and that consumes the half")
}

impl<S: HoldsStream> AsRef<SocketStream<S::Kind>> for Reads<S> {
    fn as_ref(&self) -> &SocketStream<S::Kind> {
        whole(&self.stream)
    }
}

impl<S: HoldsStream> AsRef<SocketStream<S::Kind>> for Writes<S> {
    fn as_ref(&self) -> &SocketStream<S::Kind> {
        whole(&self.stream)
    }
}

impl<S: HoldsStream> Drop for Reads<S> {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            self.slot.release(&*stream.source);
        }
    }
}

impl<S: HoldsStream> Drop for Writes<S> {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            self.slot.release(&*stream.source);
            if S::WRITE_ENDS_WITH_ITS_HALF {
                // If the connection is gone the peer has noticed.
                _ = stream.shutdown(Shutdown::Write);
            }
        }
    }
}

impl<S: HoldsStream> AsyncRead for Reads<S> {
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

impl<S: HoldsStream> AsyncWrite for Writes<S> {
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
        Poll::Ready(closed(whole(&self.stream).shutdown(Shutdown::Write)))
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
