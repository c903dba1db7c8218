//! `Socket`: a socket with its cached descriptor. Getting it from the standard library takes longer than
//! everything else before the system call.

#![allow(unsafe_code)]

use core::ops::Deref;
#[cfg(unix)]
use std::os::fd::AsRawFd;

use convoke_io::driver::StandardSocket;

use crate::poller::Handle;

/// A socket with its cached descriptor.
pub(crate) struct Socket {
    standard: StandardSocket,
    /// The descriptor of `standard`. It is not really `'static`: `handle` lends it only while `self` is
    /// borrowed.
    #[cfg(unix)]
    descriptor: Handle<'static>,
}

impl Socket {
    pub(crate) fn new(standard: StandardSocket) -> Self {
        Self {
            // SAFETY: `standard` keeps the descriptor open as long as `self` lives: it is private, never
            // changed and never moved out.
            #[cfg(unix)]
            descriptor: unsafe { Handle::borrow_raw(handle(&standard).as_raw_fd()) },
            standard,
        }
    }

    /// Returns the descriptor, for the kernel.
    #[cfg(unix)]
    #[inline]
    pub(crate) fn handle(&self) -> Handle<'_> {
        self.descriptor
    }

    /// Returns the handle, for the kernel.
    #[cfg(windows)]
    pub(crate) fn handle(&self) -> Handle<'_> {
        handle(&self.standard)
    }
}

impl Deref for Socket {
    type Target = StandardSocket;

    #[inline]
    fn deref(&self) -> &StandardSocket {
        &self.standard
    }
}

/// Returns the descriptor of a socket, for the kernel.
#[cfg(unix)]
pub(crate) fn handle(socket: &StandardSocket) -> Handle<'_> {
    use std::os::fd::AsFd;
    match socket {
        StandardSocket::TcpListener(socket) => socket.as_fd(),
        StandardSocket::TcpStream(socket) => socket.as_fd(),
        StandardSocket::UdpSocket(socket) => socket.as_fd(),
        StandardSocket::UnixListener(socket) => socket.as_fd(),
        StandardSocket::UnixStream(socket) => socket.as_fd(),
        StandardSocket::UnixDatagram(socket) => socket.as_fd(),
        StandardSocket::Descriptor(descriptor) => descriptor.as_fd(),
        _ => unreachable!("`is_known` was checked when the socket was adopted"),
    }
}

/// Returns the handle of a socket, for the kernel.
#[cfg(windows)]
pub(crate) fn handle(socket: &StandardSocket) -> Handle<'_> {
    use std::os::windows::io::AsSocket;
    match socket {
        StandardSocket::TcpListener(socket) => socket.as_socket(),
        StandardSocket::TcpStream(socket) => socket.as_socket(),
        StandardSocket::UdpSocket(socket) => socket.as_socket(),
        _ => unreachable!("`is_known` was checked when the socket was adopted"),
    }
}
