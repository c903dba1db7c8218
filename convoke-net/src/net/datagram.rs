//! Sockets for datagrams: what UDP and Unix have in common.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use std::io;
use std::sync::Arc;

use super::kind::Kind;
use convoke_io::attempting::attempt;
use convoke_io::driver::{Address, Interest, SocketOption, Source};

/// A socket for datagrams. It is [`UdpSocket`](super::UdpSocket) or [`UnixDatagram`](super::UnixDatagram). All calls take `&self`:
/// several tasks may use it at once.
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

    /// Takes a datagram, and who sent it. What does not fit into the buffer is lost.
    ///
    /// - *Completes with* its length and its sender; an error; stopped, and then no datagram was taken.
    /// - *If dropped*, no datagram was taken.
    /// - *Runs on* the task.
    #[track_caller]
    pub fn recv_from<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<(usize, K::Address)>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| {
            source.try_receive_from(buffer).and_then(|(length, from)| Ok((length, K::address(from)?)))
        })
    }

    /// Looks at a datagram, and leaves it there. All else is as for [`recv_from`](DatagramSocket::recv_from).
    #[track_caller]
    pub fn peek_from<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<(usize, K::Address)>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| {
            source.try_peek_from(buffer).and_then(|(length, from)| Ok((length, K::address(from)?)))
        })
    }

    /// Sends a datagram to where it is connected.
    ///
    /// - *Completes with* how much was sent; an error, if it is not connected; stopped, and then nothing was sent.
    /// - *If dropped*, nothing was sent.
    /// - *Runs on* the task.
    #[track_caller]
    pub fn send<'a>(&'a self, buffer: &'a [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Write, move |source| source.try_write(buffer))
    }

    /// Takes a datagram from where it is connected. What does not fit into the buffer is lost.
    ///
    /// - *Completes with* its length; an error, if it is not connected; stopped, and then no datagram was taken.
    /// - *If dropped*, no datagram was taken.
    /// - *Runs on* the task.
    #[track_caller]
    pub fn recv<'a>(&'a self, buffer: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        attempt(&self.source, Interest::Read, move |source| source.try_read(buffer))
    }

    /// Where it is.
    ///
    /// # Errors
    /// What the driver says.
    pub fn local_addr(&self) -> io::Result<K::Address> {
        self.source.local_address().and_then(K::address)
    }

    /// Where it is connected.
    ///
    /// # Errors
    /// If it is not.
    pub fn peer_addr(&self) -> io::Result<K::Address> {
        self.source.peer_address().and_then(K::address)
    }

    /// Sets an option.
    ///
    /// # Errors
    /// What the driver says.
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
}

#[cfg(unix)]
impl<K: Kind> std::os::fd::AsFd for DatagramSocket<K> {
    /// # Panics
    /// If its driver has no descriptors, as a simulated one.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        super::kind::descriptor(&*self.source)
    }
}

impl<K> fmt::Debug for DatagramSocket<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DatagramSocket").field(&self.source).finish()
    }
}
