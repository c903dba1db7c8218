//! `DatagramSocket`: the common part of UDP and Unix datagram sockets.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use std::io;
use std::sync::Arc;

use super::kind::Kind;
use convoke_io::attempting::attempt;
use convoke_io::driver::{Address, Interest, SocketOption, Source};

/// A datagram socket: [`UdpSocket`](super::UdpSocket) or [`UnixDatagram`](super::UnixDatagram). All methods
/// take `&self`, so several tasks may use it at once.
pub struct DatagramSocket<K> {
    pub(super) source: Arc<dyn Source>,
    _kind: PhantomData<fn() -> K>,
}

impl<K: Kind> DatagramSocket<K> {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Self { source, _kind: PhantomData }
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
    #[track_caller]
    pub fn recv_from<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<(usize, K::Address)>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| {
            source.try_receive_from(buffer).and_then(|(length, from)| Ok((length, K::address(from)?)))
        })
    }

    /// Receives a datagram and leaves it in the queue. Otherwise like
    /// [`recv_from`](DatagramSocket::recv_from).
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
    #[track_caller]
    pub fn recv<'a>(&'a self, buffer: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| source.try_read(buffer))
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
