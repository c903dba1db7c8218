//! `DatagramSocket`: the common part of UDP and Unix datagram sockets.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::task::{Context, Poll};
use std::io;
use std::sync::Arc;

use super::kind::Kind;
use super::poll_slot::SharedPollSlots;
use super::readiness::readiness_methods;
use convoke_io::attempting::attempt;
use convoke_io::driver::{Address, Interest, SocketOption, Source};

/// A datagram socket: [`UdpSocket`](super::UdpSocket) or [`UnixDatagram`](super::UnixDatagram). All methods
/// take `&self`, so several tasks may use it at once.
pub struct DatagramSocket<K> {
    pub(super) source: Arc<dyn Source>,
    slots: SharedPollSlots,
    _kind: PhantomData<fn() -> K>,
}

impl<K: Kind> DatagramSocket<K> {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Self { source, slots: SharedPollSlots::default(), _kind: PhantomData }
    }

    pub(super) fn send_to_address<'a>(
        &'a self,
        buffer: &'a [u8],
        to: Address,
    ) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Write, move |source| source.try_send_to(buffer, &to))
    }

    /// Receives a datagram and the address of its sender. Bytes that do not fit into the buffer are lost.
    ///
    /// - *Completes with* the length and the sender; an error; or stopped, and then no datagram was taken.
    /// - *If dropped*, no datagram was taken.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::UdpSocket;
    ///
    /// async fn echo(socket: &UdpSocket) -> std::io::Result<()> {
    ///     let mut buffer = [0; 1500];
    ///     loop {
    ///         let (length, from) = socket.recv_from(&mut buffer).await?;
    ///         socket.send_to(&buffer[..length], from).await?;
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub fn recv_from<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<(usize, K::Address)>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| receive_from::<K>(source, buffer))
    }

    /// Receives a datagram and leaves it in the queue. Otherwise like
    /// [`recv_from`](DatagramSocket::recv_from).
    ///
    /// - *Completes with* the length and the sender; an error; or stopped.
    /// - *If dropped*, nothing has happened.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::UdpSocket;
    /// use std::net::SocketAddr;
    ///
    /// async fn next_sender(socket: &UdpSocket) -> std::io::Result<SocketAddr> {
    ///     let (_, from) = socket.peek_from(&mut [0; 1]).await?;
    ///     Ok(from)
    /// }
    /// ```
    #[track_caller]
    pub fn peek_from<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<(usize, K::Address)>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| {
            source.try_peek_from(buffer).and_then(|(length, from)| Ok((length, K::address(from)?)))
        })
    }

    /// Sends a datagram to the connected peer.
    ///
    /// - *Completes with* the number of bytes sent; an error, for example if it is not connected; or stopped,
    ///   and then nothing was sent.
    /// - *If dropped*, nothing was sent.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::UdpSocket;
    ///
    /// async fn ping(socket: &UdpSocket) -> std::io::Result<()> {
    ///     socket.connect("127.0.0.1:7").await?;
    ///     socket.send(b"ping").await.map(drop)
    /// }
    /// ```
    #[track_caller]
    pub fn send<'a>(&'a self, buffer: &'a [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Write, move |source| source.try_write(buffer))
    }

    /// Receives a datagram from the connected peer. Bytes that do not fit into the buffer are lost.
    ///
    /// - *Completes with* the length; an error, for example if it is not connected; or stopped, and then no
    ///   datagram was taken.
    /// - *If dropped*, no datagram was taken.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::UdpSocket;
    ///
    /// async fn answer(socket: &UdpSocket) -> std::io::Result<Vec<u8>> {
    ///     let mut buffer = [0; 1500];
    ///     let length = socket.recv(&mut buffer).await?;
    ///     Ok(buffer[..length].to_vec())
    /// }
    /// ```
    #[track_caller]
    pub fn recv<'a>(&'a self, buffer: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| source.try_read(buffer))
    }

    /// Waits until a datagram may be received. Otherwise like [`ready`](Self::ready).
    ///
    /// - *Completes with* `()`; an error of the driver; or stopped.
    /// - *If dropped*, nothing has happened.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::UdpSocket;
    ///
    /// async fn wait(socket: &UdpSocket) -> std::io::Result<()> {
    ///     socket.readable().await
    /// }
    /// ```
    #[track_caller]
    pub fn readable(&self) -> impl Future<Output = io::Result<()>> + Send + '_ {
        self.ready(Interest::Read)
    }

    readiness_methods!();

    /// Receives a datagram and the address of its sender, without waiting.
    ///
    /// # Errors
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, or the error of the driver.
    pub fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, K::Address)> {
        receive_from::<K>(&*self.source, buffer)
    }

    /// Receives a datagram from the connected peer, without waiting.
    ///
    /// # Errors
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, or the error of the driver.
    pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.try_read(buffer)
    }

    /// Sends a datagram to the connected peer, without waiting.
    ///
    /// # Errors
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if it does not fit, or the error of the driver.
    pub fn try_send(&self, buffer: &[u8]) -> io::Result<usize> {
        self.source.try_write(buffer)
    }

    /// Polls for a datagram and the address of its sender, for protocols that are written as state machines.
    /// Only the waker of the last call is woken; use [`recv_from`](DatagramSocket::recv_from) for several
    /// tasks.
    ///
    /// # Errors
    /// Returns the error of the driver.
    #[track_caller]
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, K::Address)>> {
        self.slots.poll(&*self.source, Interest::Read, Location::caller(), cx, |source| {
            receive_from::<K>(source, buffer)
        })
    }

    /// Polls for a datagram from the connected peer. Otherwise like
    /// [`poll_recv_from`](DatagramSocket::poll_recv_from).
    ///
    /// # Errors
    /// Returns the error of the driver.
    #[track_caller]
    pub fn poll_recv(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.slots
            .poll(&*self.source, Interest::Read, Location::caller(), cx, |source| source.try_read(buffer))
    }

    /// Polls to send a datagram to the connected peer. Only the waker of the last call is woken.
    ///
    /// # Errors
    /// Returns the error of the driver.
    #[track_caller]
    pub fn poll_send(&self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.slots
            .poll(&*self.source, Interest::Write, Location::caller(), cx, |source| source.try_write(buffer))
    }

    #[track_caller]
    pub(super) fn poll_send_to_address(
        &self,
        cx: &mut Context<'_>,
        buffer: &[u8],
        to: &Address,
    ) -> Poll<io::Result<usize>> {
        self.slots.poll(&*self.source, Interest::Write, Location::caller(), cx, |source| {
            source.try_send_to(buffer, to)
        })
    }

    /// Takes the pending error of the socket, if there is one, and clears it.
    ///
    /// # Errors
    /// Fails if the driver cannot query it.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.source.take_error()
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn local_addr(&self) -> io::Result<K::Address> {
        self.source.local_address().and_then(K::address)
    }

    /// Returns the address of the connected peer.
    ///
    /// # Errors
    /// Fails if it is not connected.
    pub fn peer_addr(&self) -> io::Result<K::Address> {
        self.source.peer_address().and_then(K::address)
    }

    /// Sets an option.
    ///
    /// # Errors
    /// Returns the error of the driver.
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
}

fn receive_from<K: Kind>(source: &dyn Source, buffer: &mut [u8]) -> io::Result<(usize, K::Address)> {
    let (length, from) = source.try_receive_from(buffer)?;
    Ok((length, K::address(from)?))
}

impl<K> Drop for DatagramSocket<K> {
    fn drop(&mut self) {
        self.slots.release(&*self.source);
    }
}

#[cfg(unix)]
impl<K: Kind> std::os::fd::AsFd for DatagramSocket<K> {
    /// Returns its descriptor.
    ///
    /// # Panics
    /// If the driver has no descriptors, as in a simulation.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        super::kind::descriptor(&*self.source)
    }
}

impl<K> fmt::Debug for DatagramSocket<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DatagramSocket").field(&self.source).finish()
    }
}
