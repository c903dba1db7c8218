//! `StandardSocket`: a socket or descriptor of the standard library, to be turned into a source or made from
//! one.

use std::net;
#[cfg(unix)]
use std::os::unix::net as unix;

/// A socket of the standard library.
#[derive(Debug)]
#[non_exhaustive]
pub enum StandardSocket {
    /// A TCP listener.
    TcpListener(net::TcpListener),
    /// A TCP connection.
    TcpStream(net::TcpStream),
    /// A UDP socket.
    UdpSocket(net::UdpSocket),
    /// A listener for Unix streams.
    #[cfg(unix)]
    UnixListener(unix::UnixListener),
    /// A Unix stream.
    #[cfg(unix)]
    UnixStream(unix::UnixStream),
    /// A socket for Unix datagrams.
    #[cfg(unix)]
    UnixDatagram(unix::UnixDatagram),
    /// A descriptor of any kind that the kernel reports readiness for: a pipe, a terminal, an eventfd, an
    /// inotify instance. Such a source is watched and used with [`try_io`](super::Source::try_io).
    #[cfg(unix)]
    Descriptor(std::os::fd::OwnedFd),
}
