//! Sockets of the standard library, on their way into a driver or out of it.

use std::net;
#[cfg(unix)]
use std::os::unix::net as unix;

/// A socket of the standard library.
#[derive(Debug)]
#[non_exhaustive]
pub enum StandardSocket {
    /// A listener for TCP.
    TcpListener(net::TcpListener),
    /// A connection over TCP.
    TcpStream(net::TcpStream),
    /// Datagrams over UDP.
    UdpSocket(net::UdpSocket),
    /// A listener for streams in the file system.
    #[cfg(unix)]
    UnixListener(unix::UnixListener),
    /// A stream in the file system.
    #[cfg(unix)]
    UnixStream(unix::UnixStream),
    /// Datagrams in the file system.
    #[cfg(unix)]
    UnixDatagram(unix::UnixDatagram),
}
