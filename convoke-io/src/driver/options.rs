//! What can be said about sockets: how they are made, and what is set on them later.

use core::time::Duration;

/// How a listener or a socket for datagrams is made.
///
/// ```
/// use convoke::net::{ListenOptions, TcpListener};
///
/// let context = convoke::driver::io_context()?;
/// let two = context.run_until(async {
///     let options = ListenOptions::new().reuse_port(true).backlog(64);
///     let one = TcpListener::bind_with("127.0.0.1:0", options.clone()).await?;
///     let other = TcpListener::bind_with(one.local_addr()?, options).await?;
///     std::io::Result::Ok((one, other)) // The kernel spreads connections over the two.
/// });
/// two.unwrap()?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenOptions {
    /// How many connections may wait to be accepted.
    pub backlog: u32,
    /// Whether the address of a connection that has ended may be used again at once. On, as servers want it.
    pub reuse_address: bool,
    /// Whether others may listen at the same address, so that the kernel spreads connections over them: one listener for each
    /// core.
    pub reuse_port: bool,
    /// Whether a socket for IPv6 takes IPv6 alone; the system's default if nothing is said.
    pub only_v6: Option<bool>,
}

/// How many connections may wait to be accepted, unless something else is said.
const BACKLOG: u32 = 1024;

impl ListenOptions {
    /// As servers want it.
    pub const fn new() -> Self {
        Self { backlog: BACKLOG, reuse_address: true, reuse_port: false, only_v6: None }
    }

    /// How many connections may wait to be accepted.
    #[must_use]
    pub const fn backlog(self, backlog: u32) -> Self {
        Self { backlog, ..self }
    }

    /// Whether the address of a connection that has ended may be used again at once.
    #[must_use]
    pub const fn reuse_address(self, reuse_address: bool) -> Self {
        Self { reuse_address, ..self }
    }

    /// Whether others may listen at the same address.
    #[must_use]
    pub const fn reuse_port(self, reuse_port: bool) -> Self {
        Self { reuse_port, ..self }
    }

    /// Whether a socket for IPv6 takes IPv6 alone.
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

/// Something to be set on a socket, or asked for: then the value that is given does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketOption {
    /// Whether small writes are sent at once.
    NoDelay(bool),
    /// How many hops a packet may take.
    TimeToLive(u32),
    /// How long closing waits for what was not sent yet. Zero resets the connection.
    Linger(Option<Duration>),
    /// After how long without traffic the peer is asked whether it is there; never, if nothing is said.
    KeepAlive(Option<Duration>),
    /// The size of the kernel's buffer for what comes in.
    ReceiveBuffer(usize),
    /// The size of the kernel's buffer for what goes out.
    SendBuffer(usize),
    /// Whether datagrams may be sent to all.
    Broadcast(bool),
}
