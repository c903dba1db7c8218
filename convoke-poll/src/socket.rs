//! A socket with its descriptor at hand: whoever reads or writes need not ask the standard library for it, which takes longer than
//! all else that is done before the system call.

#![allow(unsafe_code)]

use core::ops::Deref;
#[cfg(unix)]
use std::os::fd::AsRawFd;

use convoke_io::driver::StandardSocket;

use crate::poller::Handle;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Socket {
    standard: StandardSocket,
    /// Is that of `standard`, and so not for ever: it is lent for no longer than `self` is borrowed.
    #[cfg(unix)]
    descriptor: Handle<'static>,
}

impl Socket {
    pub(crate) fn new(standard: StandardSocket) -> Self {
        Self {
            // SAFETY: `standard` has it open, and is there for as long as this: it is not changed, and not handed out.
            #[cfg(unix)]
            descriptor: unsafe { Handle::borrow_raw(handle(&standard).as_raw_fd()) },
            standard,
        }
    }

    /// The socket, for the kernel.
    #[cfg(unix)]
    #[inline]
    pub(crate) fn handle(&self) -> Handle<'_> {
        self.descriptor
    }

    /// The socket, for the kernel.
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

/// The socket, for the kernel.
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
        _ => unreachable!("what is adopted is of a kind that is known"),
    }
}

/// The socket, for the kernel.
#[cfg(windows)]
pub(crate) fn handle(socket: &StandardSocket) -> Handle<'_> {
    use std::os::windows::io::AsSocket;
    match socket {
        StandardSocket::TcpListener(socket) => socket.as_socket(),
        StandardSocket::TcpStream(socket) => socket.as_socket(),
        StandardSocket::UdpSocket(socket) => socket.as_socket(),
        _ => unreachable!("what is adopted is of a kind that is known"),
    }
}
