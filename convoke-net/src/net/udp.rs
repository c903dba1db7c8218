//! UDP: how its sockets are made, and whom they send to.

use core::future::Future;
use core::net::SocketAddr;
use std::io;

use super::address_error::connecting;
use super::datagram::DatagramSocket;
use super::kind::Internet;
use super::tcp::{another, bind_first};
use super::to_address::{ToAddress, resolve};
use convoke_io::context::current_driver;
use convoke_io::driver::{Address, ListenOptions, StandardSocket};

/// A socket for datagrams over UDP.
///
/// ```
/// use convoke::net::UdpSocket;
///
/// let context = convoke::driver::io_context().unwrap();
/// let heard = context.run_until(async {
///     let (one, other) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
///     one.send_to(b"hello", other.local_addr()?).await?;
///     let mut buffer = [0; 16];
///     let (length, from) = other.recv_from(&mut buffer).await?;
///     assert_eq!(from, one.local_addr()?);
///     std::io::Result::Ok(buffer[..length].to_vec())
/// });
/// assert_eq!(heard.unwrap().unwrap(), b"hello");
/// ```
pub type UdpSocket = DatagramSocket<Internet>;

impl UdpSocket {
    /// A socket at this address. Port 0 is one that is free.
    ///
    /// - *Completes with* the socket; an error; stopped.
    /// - *If dropped*, nothing.
    /// - *Runs on* the task, whose context it belongs to.
    #[track_caller]
    pub fn bind(address: impl ToAddress) -> impl Future<Output = io::Result<Self>> + Send {
        Self::bind_with(address, ListenOptions::default().reuse_address(false))
    }

    /// The same with options; the backlog does not matter.
    #[track_caller]
    pub fn bind_with(
        address: impl ToAddress,
        options: ListenOptions,
    ) -> impl Future<Output = io::Result<Self>> + Send {
        let addresses = resolve(address);
        async move {
            let driver = current_driver()?;
            bind_first(addresses.await?, |address| driver.datagrams(address, &options)).map(Self::new)
        }
    }

    /// From now on datagrams go to, and come from, this address.
    ///
    /// - *Completes with* nothing in particular; an error; stopped.
    /// - *If dropped*, nothing.
    /// - *Runs on* the task.
    #[track_caller]
    pub fn connect<'a>(
        &'a self,
        address: impl ToAddress + 'a,
    ) -> impl Future<Output = io::Result<()>> + Send + 'a {
        let addresses = resolve(address);
        async move {
            let mut last = Ok(());
            for address in addresses.await?.into_iter().map(Address::Internet) {
                last = self.source.connect_datagrams(&address).map_err(|error| connecting(&address, error));
                if last.is_ok() {
                    break;
                }
            }
            last
        }
    }

    /// Sends a datagram.
    ///
    /// - *Completes with* how much was sent; an error; stopped, and then nothing was sent.
    /// - *If dropped*, nothing was sent.
    /// - *Runs on* the task.
    #[track_caller]
    pub fn send_to<'a>(
        &'a self,
        buffer: &'a [u8],
        to: SocketAddr,
    ) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        self.send_to_address(buffer, Address::Internet(to))
    }

    /// A socket of the standard library, which belongs to this task's context from now on.
    ///
    /// # Errors
    /// If there is no context here, or what the driver says.
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::UdpSocket(socket)).map(Self::new)
    }

    /// As a socket of the standard library, which does not block.
    ///
    /// # Errors
    /// What the driver says.
    pub fn into_std(self) -> io::Result<std::net::UdpSocket> {
        match self.source.duplicate()? {
            StandardSocket::UdpSocket(socket) => Ok(socket),
            other => Err(another(&other)),
        }
    }
}
