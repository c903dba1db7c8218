//! Options of sockets: for creation (`ListenOptions`) and for later changes (`SocketOption`).

use core::time::Duration;

/// Options to create a listener or a datagram socket.
///
/// ```
/// use convoke::net::{ListenOptions, TcpListener};
///
/// let context = convoke::driver::io_context()?;
/// let two = context.block_on(async {
///     let options = ListenOptions::new().reuse_port(true).backlog(64);
///     let one = TcpListener::bind_with("127.0.0.1:0", options.clone()).await?;
///     let other = TcpListener::bind_with(one.local_addr()?, options).await?;
///     std::io::Result::Ok((one, other)) // The kernel spreads connections over both.
/// });
/// two.unwrap()?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenOptions {
    /// The maximum number of connections that wait to be accepted.
    pub backlog: u32,
    /// Allows to bind an address while old connections of it are still in TIME_WAIT. On by default, as
    /// servers need it.
    pub reuse_address: bool,
    /// Allows several sockets to listen at the same address. The kernel spreads connections over them: use
    /// one listener for each core.
    pub reuse_port: bool,
    /// Restricts an IPv6 socket to IPv6. `None` is the default of the system.
    pub only_v6: Option<bool>,
}

/// The default backlog.
const BACKLOG: u32 = 1024;

impl ListenOptions {
    /// Creates the default options for servers.
    pub const fn new() -> Self {
        Self { backlog: BACKLOG, reuse_address: true, reuse_port: false, only_v6: None }
    }

    /// Sets the maximum number of connections that wait to be accepted.
    #[must_use]
    pub const fn backlog(self, backlog: u32) -> Self {
        Self { backlog, ..self }
    }

    /// Allows to bind an address while old connections of it are still in TIME_WAIT.
    #[must_use]
    pub const fn reuse_address(self, reuse_address: bool) -> Self {
        Self { reuse_address, ..self }
    }

    /// Allows several sockets to listen at the same address.
    #[must_use]
    pub const fn reuse_port(self, reuse_port: bool) -> Self {
        Self { reuse_port, ..self }
    }

    /// Restricts an IPv6 socket to IPv6.
    #[must_use]
    pub const fn only_v6(self, only_v6: bool) -> Self {
        Self { only_v6: Some(only_v6), ..self }
    }
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// An option of a socket with its value. When an option is read, the value that is passed in is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketOption {
    /// Sends small writes at once (TCP_NODELAY).
    NoDelay(bool),
    /// The maximum number of hops of a packet (IP_TTL).
    TimeToLive(u32),
    /// The time that closing waits for unsent bytes (SO_LINGER). With zero, closing resets the connection.
    ///
    /// Any other time has no effect when a stream is dropped: the kernel would block the thread that closes,
    /// and with it every task of that thread, so the option is cleared first. The kernel then delivers the
    /// bytes in the background. To wait until the peer has read them, use a lingering close:
    /// `SocketStream::close_with`.
    Linger(Option<Duration>),
    /// The idle time after which the peer is probed (SO_KEEPALIVE); `None` disables probes.
    KeepAlive(Option<Duration>),
    /// The size of the kernel's receive buffer.
    ReceiveBuffer(usize),
    /// The size of the kernel's send buffer.
    SendBuffer(usize),
    /// Allows to send datagrams to broadcast addresses (SO_BROADCAST).
    Broadcast(bool),
    /// Allows to bind an address while old connections of it are still in TIME_WAIT (SO_REUSEADDR).
    ReuseAddress(bool),
    /// The type of service of packets (IP_TOS), or their traffic class (IPV6_TCLASS).
    TypeOfService(u32),
    /// Delivers datagrams to a multicast group also to sockets of this host (IP_MULTICAST_LOOP).
    MulticastLoop(bool),
    /// The maximum number of hops of a datagram to a multicast group (IP_MULTICAST_TTL).
    MulticastHops(u32),
}
