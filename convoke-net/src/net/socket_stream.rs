//! A connection: what TCP and Unix streams have in common.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;

use futures_io::{AsyncRead, AsyncWrite};

use super::halves::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use super::kind::Kind;
use super::poll_slot::PollSlots;
use super::stream_io::{FillBuffer, ReadSome, SendBuffer};
use crate::stream::Lease;
use convoke_io::attempting::attempt;
use convoke_io::driver::{Interest, SocketOption, Source};
use convoke_io::transfer::{Inward, Outward, Transfer};

/// A connection. It is [`TcpStream`](super::TcpStream) or [`UnixStream`](super::UnixStream).
///
/// Reading and writing take `&self`: two tasks may do either at once, and several readers are served in turn. It also is
/// `futures_io::{AsyncRead, AsyncWrite}`. Dropping it closes the connection; what was written is still delivered.
pub struct SocketStream<K> {
    pub(crate) source: Arc<dyn Source>,
    slots: PollSlots,
    _kind: PhantomData<fn() -> K>,
}

// It lies in a task twice: as what an `async fn` was called with, and as what that made of it.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<SocketStream<super::Internet>>() <= 24);

impl<K: Kind> SocketStream<K> {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Self { source, slots: PollSlots::new(), _kind: PhantomData }
    }

    /// Reads what is there, at least one byte if the buffer has room.
    ///
    /// - *Completes with* how much was read, zero at the end of the stream; an error of the connection; stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the task.
    #[track_caller]
    #[inline]
    pub fn read<'a>(&'a self, buffer: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        ReadSome::new(&self.source, buffer)
    }

    /// Reads what is there, into one buffer after the other. All else is as for [`read`](SocketStream::read).
    #[track_caller]
    pub fn read_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> impl Future<Output = io::Result<usize>> + Send + use<'a, 'b, K> {
        attempt(&self.source, Interest::Read, move |source| source.try_read_vectored(buffers))
    }

    /// Reads until the buffer is full.
    ///
    /// - *Completes with* nothing in particular; an error of the connection, or
    ///   [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) that says how much was there; stopped.
    /// - *If dropped*, or stopped, what was read is in the buffer, and its [`progress`](FillBuffer::progress) says how much.
    /// - *Runs on* the task.
    #[track_caller]
    pub fn read_exact<'a>(&'a self, buffer: &'a mut [u8]) -> FillBuffer<'a> {
        FillBuffer::new(&self.source, buffer)
    }

    /// Reads what is there, and leaves it there. All else is as for [`read`](SocketStream::read).
    #[track_caller]
    pub fn peek<'a>(&'a self, buffer: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| source.try_peek(buffer))
    }

    /// Reads into a buffer that is given away and comes back: no driver copies then. Reads at most what the buffer is long.
    ///
    /// - *Completes with* how much was read, and the buffer; stopped only if nothing was read.
    /// - *If dropped* in flight, it is cancelled, and the task does not end before the driver has let go of the buffer.
    /// - *Runs on* the task.
    pub fn read_owned<B: AsMut<[u8]> + Send + 'static>(&self, buffer: B) -> Transfer<B, Inward> {
        Transfer::new(self.source.clone(), buffer)
    }

    /// Reads what is there into a buffer that is lent, and goes back when the [`Lease`] is dropped. A connection that waits holds
    /// none.
    ///
    /// - *Completes with* what was read, empty at the end of the stream; an error of the connection; stopped.
    /// - *If dropped*, nothing was read.
    /// - *Runs on* the task.
    #[track_caller]
    pub fn read_lease(&self) -> impl Future<Output = io::Result<Lease>> + Send + '_ {
        attempt(&self.source, Interest::Read, |source| source.try_lease())
    }

    /// Writes what there is room for, at least one byte of a buffer that is not empty.
    ///
    /// - *Completes with* how much was written; an error of the connection; stopped.
    /// - *If dropped*, nothing was written.
    /// - *Runs on* the task.
    #[track_caller]
    #[inline]
    pub fn write<'a>(&'a self, buffer: &'a [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Write, move |source| source.try_write(buffer))
    }

    /// Writes what there is room for, from one buffer after the other. All else is as for [`write`](SocketStream::write).
    #[track_caller]
    pub fn write_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a [IoSlice<'b>],
    ) -> impl Future<Output = io::Result<usize>> + Send + use<'a, 'b, K> {
        attempt(&self.source, Interest::Write, move |source| source.try_write_vectored(buffers))
    }

    /// Writes until all of the buffer was taken.
    ///
    /// - *Completes with* nothing in particular; an error of the connection; stopped.
    /// - *If dropped*, or stopped, the beginning of the buffer may have been written, and its
    ///   [`progress`](SendBuffer::progress) says how much.
    /// - *Runs on* the task.
    #[track_caller]
    #[inline]
    pub fn write_all<'a>(&'a self, buffer: &'a [u8]) -> SendBuffer<'a> {
        SendBuffer::new(&self.source, buffer)
    }

    /// Writes from a buffer that is given away and comes back: no driver copies then. It may write only the beginning.
    ///
    /// - *Completes with* how much was written, and the buffer; stopped only if nothing was written.
    /// - *If dropped* in flight, it is cancelled, and the task does not end before the driver has let go of the buffer.
    /// - *Runs on* the task.
    pub fn write_owned<B: AsRef<[u8]> + Send + 'static>(&self, buffer: B) -> Transfer<B, Outward> {
        Transfer::new(self.source.clone(), buffer)
    }

    /// Waits until there is something to read, or the end.
    ///
    /// - *Completes with* nothing in particular; an error of the connection; stopped.
    /// - *If dropped*, nothing.
    /// - *Runs on* the task.
    #[track_caller]
    pub fn readable(&self) -> impl Future<Output = io::Result<()>> + Send + '_ {
        attempt(&self.source, Interest::Read, |source| source.try_peek(&mut [0]).map(drop))
    }

    /// Ends one direction, or both. What was written before is delivered; the peer then reads the end.
    ///
    /// # Errors
    /// If there is no connection.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.source.shut_down(how)
    }

    /// Where this end is.
    ///
    /// # Errors
    /// What the driver says.
    pub fn local_addr(&self) -> io::Result<K::Address> {
        self.source.local_address().and_then(K::address)
    }

    /// Where the other end is.
    ///
    /// # Errors
    /// If there is no connection any more.
    pub fn peer_addr(&self) -> io::Result<K::Address> {
        self.source.peer_address().and_then(K::address)
    }

    /// Sets an option. Options that are not named here are set by the crate `socket2`, on what is `AsFd`.
    ///
    /// # Errors
    /// What the driver says.
    #[doc(alias("set_linger", "set_ttl", "set_keepalive"))]
    pub fn set_option(&self, option: SocketOption) -> io::Result<()> {
        self.source.set_option(option)
    }

    /// What an option is set to; the value that is given does not matter.
    ///
    /// # Errors
    /// What the driver says.
    pub fn option(&self, option: SocketOption) -> io::Result<SocketOption> {
        self.source.option(option)
    }

    /// The error that the kernel has kept for it, if any; it is kept no longer.
    ///
    /// # Errors
    /// If the driver cannot say.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.source.take_error()
    }

    /// Two halves that borrow it.
    pub fn split(&mut self) -> (ReadHalf<'_, K>, WriteHalf<'_, K>) {
        (ReadHalf::new(self), WriteHalf::new(self))
    }

    /// Two halves that own it together, for two tasks. The one that writes ends its direction when it is dropped.
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

/// A connection that is gone is closed.
pub(super) fn closed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}

impl<K> Drop for SocketStream<K> {
    fn drop(&mut self) {
        self.slots.release(&*self.source);
    }
}

#[cfg(unix)]
impl<K: Kind> std::os::fd::AsFd for SocketStream<K> {
    /// # Panics
    /// If its driver has no descriptors, as a simulated one.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        super::kind::descriptor(&*self.source)
    }
}

impl<K> fmt::Debug for SocketStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SocketStream").field(&self.source).finish()
    }
}
