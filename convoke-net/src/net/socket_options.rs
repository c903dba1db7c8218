//! Options of sockets as methods with types of their own.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use std::io;

use super::datagram::DatagramSocket;
use super::kind::{Internet, Kind};
use super::listener::Listener;
use super::socket_stream::SocketStream;
use convoke_io::driver::{MulticastGroup, SocketOption};

/// Writes the methods that read and set an option.
macro_rules! options {
    ($($(#[doc = $doc:literal])* $get:ident, $set:ident: $variant:ident($type:ty) = $default:expr;)*) => {$(
        /// Returns the option
        $(#[doc = $doc])*
        ///
        /// # Errors
        /// Returns the error of the driver.
        pub fn $get(&self) -> io::Result<$type> {
            match self.option(SocketOption::$variant($default))? {
                SocketOption::$variant(value) => Ok(value),
                other => Err(other_option(stringify!($get), other)),
            }
        }

        /// Sets the option
        $(#[doc = $doc])*
        ///
        /// # Errors
        /// Returns the error of the driver.
        pub fn $set(&self, value: $type) -> io::Result<()> {
            self.set_option(SocketOption::$variant(value))
        }
    )*};
}

#[cold]
fn other_option(wanted: &str, returned: SocketOption) -> io::Error {
    io::Error::other(format!("the driver returned {returned:?} for the option {wanted}"))
}

impl<K: Kind> SocketStream<K> {
    options! {
        /// SO_RCVBUF: the size of the kernel's receive buffer in bytes. Kernels treat it as a hint.
        recv_buffer_size, set_recv_buffer_size: ReceiveBuffer(usize) = 0;
        /// SO_SNDBUF: the size of the kernel's send buffer in bytes. Kernels treat it as a hint.
        send_buffer_size, set_send_buffer_size: SendBuffer(usize) = 0;
    }
}

impl SocketStream<Internet> {
    options! {
        /// TCP_NODELAY: if true, small writes are sent at once.
        nodelay, set_nodelay: NoDelay(bool) = false;
        /// IP_TTL: the maximum number of hops of a packet.
        ttl, set_ttl: TimeToLive(u32) = 0;
        /// IP_TOS: the type of service of packets (IPv6: the traffic class).
        tos, set_tos: TypeOfService(u32) = 0;
        /// SO_KEEPALIVE: the idle time after which the peer is probed; `None` disables probes.
        keepalive, set_keepalive: KeepAlive(Option<Duration>) = None;
        /// SO_LINGER: with zero, closing resets the connection. See [`SocketOption::Linger`].
        linger, set_linger: Linger(Option<Duration>) = None;
    }
}

impl Listener<Internet> {
    options! {
        /// IP_TTL: the maximum number of hops of a packet. Accepted connections inherit it.
        ttl, set_ttl: TimeToLive(u32) = 0;
    }
}

impl<K: Kind> DatagramSocket<K> {
    options! {
        /// SO_RCVBUF: the size of the kernel's receive buffer in bytes. Kernels treat it as a hint.
        recv_buffer_size, set_recv_buffer_size: ReceiveBuffer(usize) = 0;
        /// SO_SNDBUF: the size of the kernel's send buffer in bytes. Kernels treat it as a hint.
        send_buffer_size, set_send_buffer_size: SendBuffer(usize) = 0;
    }
}

impl DatagramSocket<Internet> {
    options! {
        /// SO_BROADCAST: if true, datagrams may be sent to broadcast addresses.
        broadcast, set_broadcast: Broadcast(bool) = false;
        /// IP_TTL: the maximum number of hops of a datagram.
        ttl, set_ttl: TimeToLive(u32) = 0;
        /// IP_TOS: the type of service of datagrams (IPv6: the traffic class).
        tos, set_tos: TypeOfService(u32) = 0;
        /// IP_MULTICAST_LOOP: if true, datagrams to a group are also received by sockets of this host.
        multicast_loop, set_multicast_loop: MulticastLoop(bool) = false;
        /// IP_MULTICAST_TTL: the maximum number of hops of a datagram to a group.
        multicast_ttl, set_multicast_ttl: MulticastHops(u32) = 0;
    }

    /// Joins a multicast group of IPv4: the socket receives datagrams that are sent to `group` and to its own
    /// port. The unspecified address lets the kernel choose the interface.
    ///
    /// # Errors
    /// Returns the error of the driver, for example if there is no such interface.
    ///
    /// ```no_run
    /// use std::net::Ipv4Addr;
    /// use convoke::net::UdpSocket;
    ///
    /// async fn announcements() -> std::io::Result<UdpSocket> {
    ///     let socket = UdpSocket::bind("0.0.0.0:5353").await?;
    ///     socket.join_multicast_v4(Ipv4Addr::new(224, 0, 0, 251), Ipv4Addr::UNSPECIFIED)?;
    ///     Ok(socket)
    /// }
    /// ```
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.source.join_multicast(&MulticastGroup::V4 { group, interface })
    }

    /// Joins a multicast group of IPv6, on the interface with this index. Zero lets the kernel choose it.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn join_multicast_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.source.join_multicast(&MulticastGroup::V6 { group, interface })
    }

    /// Leaves a multicast group of IPv4.
    ///
    /// # Errors
    /// Returns the error of the driver, for example if the socket is not in the group.
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.source.leave_multicast(&MulticastGroup::V4 { group, interface })
    }

    /// Leaves a multicast group of IPv6.
    ///
    /// # Errors
    /// Returns the error of the driver, for example if the socket is not in the group.
    pub fn leave_multicast_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.source.leave_multicast(&MulticastGroup::V6 { group, interface })
    }
}
