//! UDP: constructors, and sending to Internet addresses.

use core::future::Future;
use core::net::SocketAddr;
use core::task::{Context, Poll};
use std::io;

use super::address_error::connect_error;
use super::datagram::DatagramSocket;
use super::kind::Internet;
use super::tcp::{bind_first, wrong_socket};
use super::to_address::{ToAddress, resolve};
use convoke_io::context::current_driver;
use convoke_io::driver::{Address, ListenOptions, StandardSocket};

/// A UDP socket.
///
/// ```
/// use convoke::net::UdpSocket;
///
/// let context = convoke::driver::io_context().unwrap();
/// let heard = context.block_on(async {
///     let one = UdpSocket::bind("127.0.0.1:0").await?;
///     let other = UdpSocket::bind("127.0.0.1:0").await?;
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
    /// Binds a socket to this address. Port 0 selects a free port.
    ///
    /// - *Completes with* the socket; an error; or stopped.
    /// - *If dropped*, nothing is bound.
    /// - *Runs on* the current task. The socket belongs to the task's context.
    ///
    /// ```
    /// use convoke::net::UdpSocket;
    ///
    /// async fn socket() -> std::io::Result<UdpSocket> {
    ///     UdpSocket::bind("127.0.0.1:0").await
    /// }
    /// ```
    #[track_caller]
    pub fn bind(address: impl ToAddress) -> impl Future<Output = io::Result<Self>> + Send {
        Self::bind_with(address, ListenOptions::default().reuse_address(false))
    }

    /// Binds a socket with options; the backlog is ignored. Otherwise like [`bind`](UdpSocket::bind).
    ///
    /// - *Completes with* the socket; an error; or stopped.
    /// - *If dropped*, nothing is bound.
    /// - *Runs on* the current task. It belongs to the task's context.
    ///
    /// ```
    /// use convoke::net::{ListenOptions, UdpSocket};
    ///
    /// async fn member() -> std::io::Result<UdpSocket> {
    ///     UdpSocket::bind_with("0.0.0.0:5353", ListenOptions::new().reuse_port(true)).await
    /// }
    /// ```
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

    /// Sets the peer: from now on datagrams are sent to, and received from, this address only.
    ///
    /// - *Completes with* `()`; an error; or stopped.
    /// - *If dropped*, the peer may be set or not.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::UdpSocket;
    ///
    /// async fn to_server() -> std::io::Result<UdpSocket> {
    ///     let socket = UdpSocket::bind("0.0.0.0:0").await?;
    ///     socket.connect("server:53").await?;
    ///     Ok(socket)
    /// }
    /// ```
    #[track_caller]
    pub fn connect<'a>(
        &'a self,
        address: impl ToAddress + 'a,
    ) -> impl Future<Output = io::Result<()>> + Send + 'a {
        let addresses = resolve(address);
        async move {
            let mut last = Ok(());
            for address in addresses.await?.into_iter().map(Address::Internet) {
                last =
                    self.source.connect_datagrams(&address).map_err(|error| connect_error(&address, error));
                if last.is_ok() {
                    break;
                }
            }
            last
        }
    }

    /// Sends a datagram to this address.
    ///
    /// - *Completes with* the number of bytes sent; an error; or stopped, and then nothing was sent.
    /// - *If dropped*, nothing was sent.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::UdpSocket;
    ///
    /// async fn ping(socket: &UdpSocket) -> std::io::Result<usize> {
    ///     socket.send_to(b"ping", ([127, 0, 0, 1], 7).into()).await
    /// }
    /// ```
    #[track_caller]
    pub fn send_to<'a>(
        &'a self,
        buffer: &'a [u8],
        to: SocketAddr,
    ) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        self.send_to_address(buffer, Address::Internet(to))
    }

    /// Sends a datagram to this address, without waiting.
    ///
    /// # Errors
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if it does not fit, or the error of the driver.
    pub fn try_send_to(&self, buffer: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.source.try_send_to(buffer, &Address::Internet(to))
    }

    /// Polls to send a datagram to this address. Only the waker of the last call is woken; use
    /// [`send_to`](UdpSocket::send_to) for several tasks.
    ///
    /// # Errors
    /// Returns the error of the driver.
    #[track_caller]
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buffer: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.poll_send_to_address(cx, buffer, &Address::Internet(to))
    }

    /// Adopts a socket of the standard library: it belongs to the current task's context from now on.
    ///
    /// # Errors
    /// Fails if there is no I/O context, or with the error of the driver.
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::UdpSocket(socket)).map(Self::new)
    }

    /// Converts it to a socket of the standard library, in non-blocking mode.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn into_std(self) -> io::Result<std::net::UdpSocket> {
        match self.source.duplicate()? {
            StandardSocket::UdpSocket(socket) => Ok(socket),
            other => Err(wrong_socket(&other)),
        }
    }
}
