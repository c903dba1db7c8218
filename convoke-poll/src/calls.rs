//! The calls on a socket, whatever its kind. None of them knows of readiness; each says what the kernel says.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;

use convoke_io::driver::{Address, StandardSocket, unsupported};
use socket2::SockRef;

use crate::addresses;
use crate::socket::{Socket, handle};

/// So many buffers every system takes in one call. Of more it may take the first ones alone, and a transfer that falls short
/// then says nothing about the socket.
pub(crate) const BUFFERS_TAKEN: usize = 16;

/// The socket, for socket2.
pub(crate) fn reference(socket: &StandardSocket) -> SockRef<'_> {
    match socket {
        StandardSocket::TcpListener(socket) => SockRef::from(socket),
        StandardSocket::TcpStream(socket) => SockRef::from(socket),
        StandardSocket::UdpSocket(socket) => SockRef::from(socket),
        #[cfg(unix)]
        StandardSocket::UnixListener(socket) => SockRef::from(socket),
        #[cfg(unix)]
        StandardSocket::UnixStream(socket) => SockRef::from(socket),
        #[cfg(unix)]
        StandardSocket::UnixDatagram(socket) => SockRef::from(socket),
        _ => unreachable!("what is adopted is of a kind that is known"),
    }
}

/// Whether there is such a kind of socket here: the list of them may grow.
pub(crate) fn is_known(socket: &StandardSocket) -> bool {
    match socket {
        StandardSocket::TcpListener(_) | StandardSocket::TcpStream(_) | StandardSocket::UdpSocket(_) => true,
        #[cfg(unix)]
        StandardSocket::UnixListener(_) | StandardSocket::UnixStream(_) | StandardSocket::UnixDatagram(_) => {
            true
        }
        _ => false,
    }
}

/// Whether bytes follow each other in it, without borders.
#[inline]
pub(crate) fn is_stream(socket: &StandardSocket) -> bool {
    match socket {
        StandardSocket::TcpStream(_) => true,
        #[cfg(unix)]
        StandardSocket::UnixStream(_) => true,
        _ => false,
    }
}

/// Whether it takes connections, and has no bytes of its own.
pub(crate) fn is_listener(socket: &StandardSocket) -> bool {
    match socket {
        StandardSocket::TcpListener(_) => true,
        #[cfg(unix)]
        StandardSocket::UnixListener(_) => true,
        _ => false,
    }
}

/// One system call for all kinds, and nothing around it: this is what a server does most. What the kernel says of sockets that have no
/// bytes is an error too.
#[cfg(unix)]
#[inline]
pub(crate) fn read(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    let (read, _) = rustix::net::recv(socket.handle(), buffer, rustix::net::RecvFlags::empty())?;
    Ok(read)
}

#[cfg(windows)]
pub(crate) fn read(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    match &**socket {
        StandardSocket::TcpStream(stream) => (&*stream).read(buffer),
        StandardSocket::UdpSocket(socket) => socket.recv(buffer),
        _ => Err(unsupported("bytes to read from this source")),
    }
}

pub(crate) fn read_vectored(socket: &Socket, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    match &**socket {
        StandardSocket::TcpStream(stream) => (&*stream).read_vectored(buffers),
        #[cfg(unix)]
        StandardSocket::UnixStream(stream) => (&*stream).read_vectored(buffers),
        _ => match buffers.iter_mut().find(|buffer| !buffer.is_empty()) {
            Some(first) => read(socket, first),
            None => read(socket, &mut []),
        },
    }
}

pub(crate) fn peek(socket: &StandardSocket, buffer: &mut [u8]) -> io::Result<usize> {
    match socket {
        StandardSocket::TcpStream(stream) => stream.peek(buffer),
        StandardSocket::UdpSocket(socket) => socket.peek(buffer),
        #[cfg(unix)]
        StandardSocket::UnixStream(_) | StandardSocket::UnixDatagram(_) => {
            let reading = rustix::net::RecvFlags::PEEK;
            Ok(rustix::net::recv(handle(socket), buffer, reading).map(|(_, length)| length)?)
        }
        _ => Err(unsupported("bytes to look at in this source")),
    }
}

/// As `read`. Who writes to a peer that has gone hears of it by an error, and not by a signal.
#[cfg(unix)]
#[inline]
pub(crate) fn write(socket: &Socket, buffer: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(socket.handle(), buffer, WITHOUT_SIGNAL)?)
}

#[cfg(all(unix, not(target_vendor = "apple")))]
const WITHOUT_SIGNAL: rustix::net::SendFlags = rustix::net::SendFlags::NOSIGNAL;
/// Sockets of the standard library are set up so here that they do not signal.
#[cfg(all(unix, target_vendor = "apple"))]
const WITHOUT_SIGNAL: rustix::net::SendFlags = rustix::net::SendFlags::empty();

#[cfg(windows)]
pub(crate) fn write(socket: &Socket, buffer: &[u8]) -> io::Result<usize> {
    match &**socket {
        StandardSocket::TcpStream(stream) => (&*stream).write(buffer),
        StandardSocket::UdpSocket(socket) => socket.send(buffer),
        _ => Err(unsupported("room for bytes in this source")),
    }
}

pub(crate) fn write_vectored(socket: &StandardSocket, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
    match socket {
        StandardSocket::TcpStream(stream) => (&*stream).write_vectored(buffers),
        #[cfg(unix)]
        StandardSocket::UnixStream(stream) => (&*stream).write_vectored(buffers),
        StandardSocket::UdpSocket(_) => reference(socket).send_vectored(buffers),
        #[cfg(unix)]
        StandardSocket::UnixDatagram(_) => reference(socket).send_vectored(buffers),
        _ => Err(unsupported("room for bytes in this source")),
    }
}

pub(crate) fn accept(socket: &StandardSocket) -> io::Result<(StandardSocket, Address)> {
    match socket {
        StandardSocket::TcpListener(listener) => {
            let (stream, peer) = listener.accept()?;
            stream.set_nonblocking(true)?;
            Ok((StandardSocket::TcpStream(stream), Address::Internet(peer)))
        }
        #[cfg(unix)]
        StandardSocket::UnixListener(listener) => {
            let (stream, peer) = listener.accept()?;
            stream.set_nonblocking(true)?;
            Ok((StandardSocket::UnixStream(stream), addresses::of_unix(&peer)))
        }
        _ => Err(unsupported("connections to accept from this source")),
    }
}

pub(crate) fn receive_from(socket: &StandardSocket, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
    match socket {
        StandardSocket::UdpSocket(socket) => {
            socket.recv_from(buffer).map(|(length, from)| (length, Address::Internet(from)))
        }
        #[cfg(unix)]
        StandardSocket::UnixDatagram(socket) => {
            socket.recv_from(buffer).map(|(length, from)| (length, addresses::of_unix(&from)))
        }
        _ => Err(unsupported("datagrams in this source")),
    }
}

pub(crate) fn peek_from(socket: &StandardSocket, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
    match socket {
        StandardSocket::UdpSocket(socket) => {
            socket.peek_from(buffer).map(|(length, from)| (length, Address::Internet(from)))
        }
        #[cfg(unix)]
        StandardSocket::UnixDatagram(_) => {
            let peeking = rustix::net::RecvFlags::PEEK;
            let (length, _, from) = rustix::net::recvfrom(handle(socket), buffer, peeking)?;
            Ok((length, addresses::of_sender(from)))
        }
        _ => Err(unsupported("datagrams to look at in this source")),
    }
}

pub(crate) fn send_to(socket: &StandardSocket, buffer: &[u8], to: &Address) -> io::Result<usize> {
    match (socket, to) {
        (StandardSocket::UdpSocket(socket), Address::Internet(to)) => socket.send_to(buffer, to),
        #[cfg(unix)]
        (StandardSocket::UnixDatagram(_), Address::Path(_)) => {
            let (name, reference) = (addresses::to_any(to)?, reference(socket));
            let send = || reference.send_to(buffer, &name);
            match send() {
                // Once more: there may be room by now.
                Err(error) if is_full(&error) && nobody_will_say(socket, to) => {
                    send().map_err(receiver_is_full)
                }
                sent => sent,
            }
        }
        (StandardSocket::UdpSocket(_), _) => Err(addresses::wrong_kind(to)),
        #[cfg(unix)]
        (StandardSocket::UnixDatagram(_), _) => Err(addresses::wrong_kind(to)),
        _ => Err(unsupported("room for datagrams in this source")),
    }
}

/// There is no room, at the other end or here.
#[cfg(unix)]
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Whether the socket itself has room: then it is the receiver who has none. The kernel says when he has to those who are connected
/// with him; whoever else waited for that would wait for ever.
#[cfg(unix)]
#[cold]
fn nobody_will_say(socket: &StandardSocket, to: &Address) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let handle = handle(socket);
    let room = poll(&mut [PollFd::new(&handle, PollFlags::OUT)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    let peer = reference(socket).peer_addr().and_then(|peer| addresses::of_any(&peer));
    room == Ok(1) && !peer.is_ok_and(|peer| peer == *to)
}

#[cfg(unix)]
#[cold]
fn receiver_is_full(error: io::Error) -> io::Error {
    if !is_full(&error) {
        return error;
    }
    io::Error::new(
        io::ErrorKind::ResourceBusy,
        "the receiver's queue is full, and the kernel does not say when it is not: connect the socket to wait for that",
    )
}

/// Whether it takes time: then the kernel says when it is connected, or why it is not.
pub(crate) fn begin_to_connect(socket: &StandardSocket, to: &Address) -> io::Result<bool> {
    match reference(socket).connect(&addresses::to_any(to)?) {
        Ok(()) => Ok(false),
        Err(error) if is_in_progress(&error) => Ok(true),
        #[cfg(unix)]
        Err(error) if is_full(&error) && matches!(socket, StandardSocket::UnixStream(_)) => {
            Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "the listener's queue is full, and the kernel does not say when it is not",
            ))
        }
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn is_in_progress(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::INPROGRESS | Errno::INTR))
}

#[cfg(windows)]
fn is_in_progress(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

pub(crate) fn connect_datagrams(socket: &StandardSocket, to: &Address) -> io::Result<()> {
    match socket {
        StandardSocket::UdpSocket(_) => reference(socket).connect(&addresses::to_any(to)?),
        #[cfg(unix)]
        StandardSocket::UnixDatagram(_) => reference(socket).connect(&addresses::to_any(to)?),
        _ => Err(unsupported("datagrams in this source")),
    }
}

pub(crate) fn shut_down(socket: &StandardSocket, how: Shutdown) -> io::Result<()> {
    if is_stream(socket) {
        return reference(socket).shutdown(how);
    }
    Err(unsupported("directions that could be ended"))
}

/// Another handle of the same socket.
pub(crate) fn duplicate(socket: &StandardSocket) -> io::Result<StandardSocket> {
    match socket {
        StandardSocket::TcpListener(socket) => socket.try_clone().map(StandardSocket::TcpListener),
        StandardSocket::TcpStream(socket) => socket.try_clone().map(StandardSocket::TcpStream),
        StandardSocket::UdpSocket(socket) => socket.try_clone().map(StandardSocket::UdpSocket),
        #[cfg(unix)]
        StandardSocket::UnixListener(socket) => socket.try_clone().map(StandardSocket::UnixListener),
        #[cfg(unix)]
        StandardSocket::UnixStream(socket) => socket.try_clone().map(StandardSocket::UnixStream),
        #[cfg(unix)]
        StandardSocket::UnixDatagram(socket) => socket.try_clone().map(StandardSocket::UnixDatagram),
        _ => Err(unsupported("handles of this socket")),
    }
}
