//! `SocketStream`: the common part of TCP and Unix connections.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;

use futures_io::{AsyncRead, AsyncWrite};

use super::closing::closed;
use super::halves::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use super::kind::Kind;
use super::poll_slot::PollSlots;
use super::readiness::readiness_methods;
use super::stream_io::{FillBuffer, ReadSome, SendBuffer};
use crate::stream::Lease;
use convoke_io::attempting::attempt;
use convoke_io::driver::{Interest, SocketOption, Source, try_read_into};
use convoke_io::transfer::{Inward, Outward, Transfer};

/// The number of bytes by which [`SocketStream::read_buf`] grows a full buffer, at least.
pub const READ_GROWTH: usize = 4096;

/// A connection. It is [`TcpStream`](super::TcpStream) or [`UnixStream`](super::UnixStream).
///
/// Reading and writing take `&self`: one task may read while another writes, and several readers take turns.
/// It also implements `futures_io::{AsyncRead, AsyncWrite}`.
///
/// # Closing
/// [`using`](convoke_task::using()) a stream, or [`close_with`](SocketStream::close_with), closes it so that
/// what was written is delivered: the peer reads the end of the stream, and input is discarded until the peer
/// ends too, within the limits of [`Linger`](crate::stream::Linger). Dropping it closes at once: the kernel still delivers what was
/// written if all input was read, but unread input resets the connection, and bytes that the peer has not
/// received yet are lost.
pub struct SocketStream<K> {
    pub(crate) source: Arc<dyn Source>,
    slots: PollSlots,
    _kind: PhantomData<fn() -> K>,
}

// A task stores it twice: as the argument of an `async fn`, and as the variable that holds it there.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<SocketStream<super::Internet>>() <= 24);

impl<K: Kind> SocketStream<K> {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Self { source, slots: PollSlots::new(), _kind: PhantomData }
    }

    /// Reads the available bytes. Waits for at least one, unless the buffer is empty.
    ///
    /// - *Completes with* the number of bytes, zero at the end of the stream; an error of the connection; or
    ///   stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpStream;
    ///
    /// async fn count(stream: &TcpStream) -> std::io::Result<usize> {
    ///     let (mut buffer, mut bytes) = ([0; 1024], 0);
    ///     loop {
    ///         match stream.read(&mut buffer).await? {
    ///             0 => return Ok(bytes),
    ///             read => bytes += read,
    ///         }
    ///     }
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn read<'a>(&'a self, buffer: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        ReadSome::new(&self.source, buffer)
    }

    /// Reads the available bytes into several buffers, in order. Otherwise like [`read`](SocketStream::read).
    ///
    /// - *Completes with* the number of bytes, zero at the end of the stream; an error of the connection; or
    ///   stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::io::IoSliceMut;
    /// use convoke::net::TcpStream;
    ///
    /// async fn parts(stream: &TcpStream) -> std::io::Result<usize> {
    ///     let (mut head, mut body) = ([0; 4], [0; 508]);
    ///     let mut both = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut body)];
    ///     stream.read_vectored(&mut both).await
    /// }
    /// ```
    #[track_caller]
    pub fn read_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> impl Future<Output = io::Result<usize>> + Send + use<'a, 'b, K> {
        attempt(&self.source, Interest::Read, move |source| source.try_read_vectored(buffers))
    }

    /// Reads until the buffer is full.
    ///
    /// - *Completes with* `()`; an error of the connection, or
    ///   [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) with the number of bytes that were read; or stopped.
    /// - *If dropped* or stopped, the bytes that were read are in the buffer, and
    ///   [`progress`](FillBuffer::progress) tells how many.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpStream;
    ///
    /// /// Reads a length and as many bytes.
    /// async fn message(stream: &TcpStream) -> std::io::Result<Vec<u8>> {
    ///     let mut length = [0; 2];
    ///     stream.read_exact(&mut length).await?;
    ///     let mut body = vec![0; u16::from_be_bytes(length).into()];
    ///     stream.read_exact(&mut body).await?;
    ///     Ok(body)
    /// }
    /// ```
    #[track_caller]
    pub fn read_exact<'a>(&'a self, buffer: &'a mut [u8]) -> FillBuffer<'a> {
        FillBuffer::new(&self.source, buffer)
    }

    /// Reads the available bytes to the end of a vector, into its spare capacity, which need not be
    /// initialised. If there is none, reserves [`READ_GROWTH`](super::READ_GROWTH) bytes first.
    ///
    /// - *Completes with* the number of bytes, zero at the end of the stream; an error of the connection; or
    ///   stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpStream;
    ///
    /// async fn all(stream: &TcpStream) -> std::io::Result<Vec<u8>> {
    ///     let mut all = Vec::with_capacity(1 << 16);
    ///     while stream.read_buf(&mut all).await? > 0 {}
    ///     Ok(all)
    /// }
    /// ```
    #[track_caller]
    pub fn read_buf<'a>(
        &'a self,
        buffer: &'a mut Vec<u8>,
    ) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| {
            if buffer.len() == buffer.capacity() {
                buffer.reserve(READ_GROWTH);
            }
            try_read_into(source, buffer)
        })
    }

    /// Reads the available bytes without consuming them. Otherwise like [`read`](SocketStream::read).
    ///
    /// - *Completes with* the number of bytes, zero at the end of the stream; an error of the connection; or
    ///   stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpStream;
    ///
    /// async fn is_tls(stream: &TcpStream) -> std::io::Result<bool> {
    ///     let mut first = [0];
    ///     Ok(stream.peek(&mut first).await? == 1 && first[0] == 0x16)
    /// }
    /// ```
    #[track_caller]
    pub fn peek<'a>(&'a self, buffer: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| source.try_peek(buffer))
    }

    /// Reads into a buffer that is moved to the driver and returned with the result, so no driver copies
    /// bytes. Reads at most the length of the buffer.
    ///
    /// - *Completes with* the number of bytes and the buffer; stopped only if nothing was read.
    /// - *If dropped* in flight, it is cancelled, and the task does not end before the driver has released
    ///   the buffer.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpStream;
    ///
    /// async fn first(stream: &TcpStream) -> std::io::Result<Vec<u8>> {
    ///     let (read, mut buffer) = stream.read_owned(vec![0; 1024]).await;
    ///     buffer.truncate(read?);
    ///     Ok(buffer)
    /// }
    /// ```
    pub fn read_owned<B: AsMut<[u8]> + Send + 'static>(&self, buffer: B) -> Transfer<B, Inward> {
        Transfer::new(self.source.clone(), buffer)
    }

    /// Reads the available bytes into a buffer of the driver, which is returned when the [`Lease`] is
    /// dropped. A connection that waits owns no buffer.
    ///
    /// - *Completes with* the bytes, empty at the end of the stream; an error of the connection; or stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpStream;
    ///
    /// async fn echo(stream: &TcpStream) -> std::io::Result<()> {
    ///     loop {
    ///         let bytes = stream.read_lease().await?;
    ///         if bytes.is_empty() {
    ///             return Ok(());
    ///         }
    ///         stream.write_all(&bytes).await?;
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub fn read_lease(&self) -> impl Future<Output = io::Result<Lease>> + Send + '_ {
        attempt(&self.source, Interest::Read, |source| source.try_lease())
    }

    /// Writes as many bytes as fit into the kernel's buffer. Waits until at least one fits, unless the buffer
    /// is empty.
    ///
    /// - *Completes with* the number of bytes; an error of the connection; or stopped.
    /// - *If dropped*, nothing was written.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpStream;
    ///
    /// async fn some(stream: &TcpStream, bytes: &[u8]) -> std::io::Result<usize> {
    ///     stream.write(bytes).await
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn write<'a>(&'a self, buffer: &'a [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Write, move |source| source.try_write(buffer))
    }

    /// Writes from several buffers, in order. Otherwise like [`write`](SocketStream::write).
    ///
    /// - *Completes with* the number of bytes; an error of the connection; or stopped.
    /// - *If dropped*, nothing was written.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::io::IoSlice;
    /// use convoke::net::TcpStream;
    ///
    /// async fn parts(stream: &TcpStream, body: &[u8]) -> std::io::Result<usize> {
    ///     stream.write_vectored(&[IoSlice::new(b"head"), IoSlice::new(body)]).await
    /// }
    /// ```
    #[track_caller]
    pub fn write_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a [IoSlice<'b>],
    ) -> impl Future<Output = io::Result<usize>> + Send + use<'a, 'b, K> {
        attempt(&self.source, Interest::Write, move |source| source.try_write_vectored(buffers))
    }

    /// Writes the whole buffer.
    ///
    /// - *Completes with* `()`; an error of the connection; or stopped.
    /// - *If dropped* or stopped, the beginning of the buffer may have been written, and
    ///   [`progress`](SendBuffer::progress) tells how much.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpStream;
    ///
    /// async fn greet(stream: &TcpStream) -> std::io::Result<()> {
    ///     stream.write_all(b"hello\n").await
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn write_all<'a>(&'a self, buffer: &'a [u8]) -> SendBuffer<'a> {
        SendBuffer::new(&self.source, buffer)
    }

    /// Writes from a buffer that is moved to the driver and returned with the result, so no driver copies
    /// bytes. May write only the beginning.
    ///
    /// - *Completes with* the number of bytes and the buffer; stopped only if nothing was written.
    /// - *If dropped* in flight, it is cancelled, and the task does not end before the driver has released
    ///   the buffer.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpStream;
    ///
    /// async fn send(stream: &TcpStream, bytes: Vec<u8>) -> std::io::Result<Vec<u8>> {
    ///     let (written, mut bytes) = stream.write_owned(bytes).await;
    ///     bytes.drain(..written?);
    ///     Ok(bytes) // What is left to write.
    /// }
    /// ```
    pub fn write_owned<B: AsRef<[u8]> + Send + 'static>(&self, buffer: B) -> Transfer<B, Outward> {
        Transfer::new(self.source.clone(), buffer)
    }

    /// Waits until there are bytes to read, or the end of the stream.
    ///
    /// - *Completes with* `()`; an error of the connection; or stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpStream;
    ///
    /// async fn wait(stream: &TcpStream) -> std::io::Result<()> {
    ///     stream.readable().await
    /// }
    /// ```
    #[track_caller]
    pub fn readable(&self) -> impl Future<Output = io::Result<()>> + Send + '_ {
        attempt(&self.source, Interest::Read, |source| source.try_peek(&mut [0]).map(drop))
    }

    readiness_methods!();

    /// Reads the available bytes without waiting.
    ///
    /// # Errors
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if there are none, or the error of the connection.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.try_read(buffer)
    }

    /// Writes as many bytes as fit into the kernel's buffer, without waiting.
    ///
    /// # Errors
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if none fit, or the error of the connection.
    pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.source.try_write(buffer)
    }

    /// Shuts down one direction, or both. Bytes that were written before are still delivered; the peer then
    /// reads the end of the stream.
    ///
    /// # Errors
    /// Fails if there is no connection.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.source.shut_down(how)
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn local_addr(&self) -> io::Result<K::Address> {
        self.source.local_address().and_then(K::address)
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    /// Fails if the connection is gone.
    pub fn peer_addr(&self) -> io::Result<K::Address> {
        self.source.peer_address().and_then(K::address)
    }

    /// Sets an option. For options that are not listed here use the crate `socket2` through `AsFd`.
    ///
    /// # Errors
    /// Returns the error of the driver.
    #[doc(alias("set_linger", "set_ttl", "set_keepalive"))]
    pub fn set_option(&self, option: SocketOption) -> io::Result<()> {
        self.source.set_option(option)
    }

    /// Returns the value of an option. The value in `option` is ignored.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn option(&self, option: SocketOption) -> io::Result<SocketOption> {
        self.source.option(option)
    }

    /// Takes the pending error of the socket, if there is one, and clears it.
    ///
    /// # Errors
    /// Fails if the driver cannot query it.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.source.take_error()
    }

    /// Splits it into two halves that borrow it.
    pub fn split(&mut self) -> (ReadHalf<'_, K>, WriteHalf<'_, K>) {
        (ReadHalf::new(self), WriteHalf::new(self))
    }

    /// Splits it into two halves that own it together, for two tasks. Dropping the write half shuts down its
    /// direction.
    pub fn into_split(self) -> (OwnedReadHalf<K>, OwnedWriteHalf<K>) {
        let stream = Arc::new(self);
        (OwnedReadHalf::new(stream.clone()), OwnedWriteHalf::new(stream))
    }
}

impl<K: Kind> AsyncRead for SocketStream<K> {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slots.reads().poll_read(&*this.source, cx, buffer)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slots.reads().poll_read_vectored(&*this.source, cx, buffers)
    }
}

impl<K: Kind> AsyncWrite for SocketStream<K> {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slots.writes().poll_write(&*this.source, cx, buffer)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.slots.writes().poll_write_vectored(&*this.source, cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(closed(self.source.shut_down(Shutdown::Write)))
    }
}

impl<K> Drop for SocketStream<K> {
    fn drop(&mut self) {
        self.slots.release(&*self.source);
    }
}

#[cfg(unix)]
impl<K: Kind> std::os::fd::AsFd for SocketStream<K> {
    /// Returns its descriptor.
    ///
    /// # Panics
    /// If the driver has no descriptors, as in a simulation.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        super::kind::descriptor(&*self.source)
    }
}

impl<K> fmt::Debug for SocketStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SocketStream").field(&self.source).finish()
    }
}
