//! System calls on sockets of any kind. They know nothing of readiness and return the result of the kernel.

#[cfg(windows)]
use std::io::Write;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::net::Shutdown;

use convoke_io::driver::{Address, StandardSocket, unsupported};
use socket2::SockRef;

use crate::addresses;
use crate::socket::{Socket, handle};
#[cfg(unix)]
use crate::system_calls;

/// The number of buffers that every system accepts in one call. Of more buffers it may take only the first
/// ones, and a short transfer says nothing about the socket then.
pub(crate) const BUFFERS_TAKEN: usize = 16;

/// The largest number of buffers in one call. With more, `sendmsg` of Linux, the BSDs and Apple fails.
const MOST_BUFFERS: usize = 1024;

/// Returns a reference for socket2.
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
        #[cfg(unix)]
        StandardSocket::Descriptor(descriptor) => SockRef::from(descriptor),
        _ => unreachable!("`is_known` was checked when the socket was adopted"),
    }
}

/// Returns true if this driver supports this kind of socket: `StandardSocket` is non-exhaustive.
pub(crate) fn is_known(socket: &StandardSocket) -> bool {
    match socket {
        StandardSocket::TcpListener(_) | StandardSocket::TcpStream(_) | StandardSocket::UdpSocket(_) => true,
        #[cfg(unix)]
        StandardSocket::UnixListener(_)
        | StandardSocket::UnixStream(_)
        | StandardSocket::UnixDatagram(_)
        | StandardSocket::Descriptor(_) => true,
        _ => false,
    }
}

/// Returns true for a stream of bytes without message boundaries.
#[inline]
pub(crate) fn is_stream(socket: &StandardSocket) -> bool {
    match socket {
        StandardSocket::TcpStream(_) => true,
        #[cfg(unix)]
        StandardSocket::UnixStream(_) => true,
        _ => false,
    }
}

/// Returns true for a listener, which has no bytes of its own.
pub(crate) fn is_listener(socket: &StandardSocket) -> bool {
    match socket {
        StandardSocket::TcpListener(_) => true,
        #[cfg(unix)]
        StandardSocket::UnixListener(_) => true,
        _ => false,
    }
}

/// Reads with a single system call for all kinds of sockets: this is the hot path of a server. On a socket
/// without bytes the kernel returns an error.
#[cfg(unix)]
#[inline]
pub(crate) fn read(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    system_calls::receive(socket.handle(), buffer, 0)
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
            system_calls::receive(handle(socket), buffer, system_calls::PEEK)
        }
        _ => Err(unsupported("bytes to peek at in this source")),
    }
}

/// Writes with a single system call for all kinds of sockets. A peer that is gone is reported by an error,
/// not by SIGPIPE.
#[cfg(unix)]
#[inline]
pub(crate) fn write(socket: &Socket, buffer: &[u8]) -> io::Result<usize> {
    system_calls::send(socket.handle(), buffer)
}

#[cfg(windows)]
pub(crate) fn write(socket: &Socket, buffer: &[u8]) -> io::Result<usize> {
    match &**socket {
        StandardSocket::TcpStream(stream) => (&*stream).write(buffer),
        StandardSocket::UdpSocket(socket) => socket.send(buffer),
        _ => Err(unsupported("way to write to this source")),
    }
}

/// Writes from several buffers. The standard library's `write_vectored` is `writev`, which has no flags and
/// raises SIGPIPE.
pub(crate) fn write_vectored(socket: &StandardSocket, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
    if is_listener(socket) {
        return Err(unsupported("way to write to this source"));
    }
    let buffers = if is_stream(socket) { first_buffers(buffers) } else { buffers };
    reference(socket).send_vectored_with_flags(buffers, NO_SIGNAL)
}

/// Returns as many buffers as one call takes. A stream may write the others later, a datagram is whole.
fn first_buffers<'a, 'b>(buffers: &'a [IoSlice<'b>]) -> &'a [IoSlice<'b>] {
    let first = buffers.iter().position(|buffer| !buffer.is_empty()).unwrap_or(0);
    let buffers = &buffers[first..];
    &buffers[..buffers.len().min(MOST_BUFFERS)]
}

/// The flags of calls that write: a peer that is gone raises no SIGPIPE.
#[cfg(all(unix, not(target_vendor = "apple")))]
const NO_SIGNAL: i32 = libc::MSG_NOSIGNAL;
/// Apple systems have no such flag, and `socket2` and the standard library set SO_NOSIGPIPE on their sockets.
/// Windows has no such signal.
#[cfg(any(windows, target_vendor = "apple"))]
const NO_SIGNAL: i32 = 0;

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
            let (length, from) = system_calls::peek_from(&reference(socket), buffer)?;
            Ok((length, addresses::of_sender(&from)?))
        }
        _ => Err(unsupported("datagrams to peek at in this source")),
    }
}

pub(crate) fn send_to(socket: &StandardSocket, buffer: &[u8], to: &Address) -> io::Result<usize> {
    match (socket, to) {
        (StandardSocket::UdpSocket(socket), Address::Internet(to)) => socket.send_to(buffer, to),
        #[cfg(unix)]
        (StandardSocket::UnixDatagram(_), Address::Path(_)) => {
            let (name, reference) = (addresses::to_any(to)?, reference(socket));
            let send = || reference.send_to_with_flags(buffer, &name, NO_SIGNAL);
            match send() {
                // Tried once more: there may be space by now.
                Err(error) if is_full(&error) && is_never_reported(socket, to) => {
                    send().map_err(receiver_is_full)
                }
                sent => sent,
            }
        }
        (StandardSocket::UdpSocket(_), _) => Err(addresses::wrong_kind(to)),
        #[cfg(unix)]
        (StandardSocket::UnixDatagram(_), _) => Err(addresses::wrong_kind(to)),
        _ => Err(unsupported("way to send datagrams from this source")),
    }
}

/// Returns true if a queue is full, at the receiver or here.
#[cfg(unix)]
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Returns true if the receiver's queue is full and no event will tell when it has space again: the socket
/// itself is writable, and it is not connected to the receiver. The kernel reports free space only to
/// connected sockets, so any other would wait for ever.
#[cfg(unix)]
#[cold]
fn is_never_reported(socket: &StandardSocket, to: &Address) -> bool {
    let peer = reference(socket).peer_addr().and_then(|peer| addresses::of_any(&peer));
    system_calls::is_writable(handle(socket)) && !peer.is_ok_and(|peer| peer == *to)
}

#[cfg(unix)]
#[cold]
fn receiver_is_full(error: io::Error) -> io::Error {
    if !is_full(&error) {
        return error;
    }
    io::Error::new(
        io::ErrorKind::ResourceBusy,
        "the receiver's queue is full, and the kernel does not report when it has space: connect the socket to wait for that",
    )
}

/// Starts to connect. Returns true if that takes time: an event then reports the result.
pub(crate) fn start_connect(socket: &StandardSocket, to: &Address) -> io::Result<bool> {
    match reference(socket).connect(&addresses::to_any(to)?) {
        Ok(()) => Ok(false),
        Err(error) if is_in_progress(&error) => Ok(true),
        #[cfg(unix)]
        Err(error) if is_full(&error) && matches!(socket, StandardSocket::UnixStream(_)) => {
            Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "the listener's queue is full, and the kernel does not report when it has space",
            ))
        }
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
use system_calls::is_in_progress;

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
    Err(unsupported("directions to shut down in this source"))
}

/// Duplicates the handle of a socket.
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
        #[cfg(unix)]
        StandardSocket::Descriptor(descriptor) => descriptor.try_clone().map(StandardSocket::Descriptor),
        _ => Err(unsupported("handles of this socket")),
    }
}
