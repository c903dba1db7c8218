//! `Source`: a socket, as its driver implements it. Calls that can be done at once are tried; calls that may
//! take time are submitted.

use core::fmt;
use core::task::Waker;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;

use super::lease::Lease;
use super::{
    Address, InFlight, Interest, MulticastGroup, OperationId, PeerCredentials, SocketOption, SpareBuffer,
    StandardSocket, Ticket, unsupported,
};

/// A socket of a driver: readable, writable, or a listener. It holds its driver; its users need not know
/// which one.
///
/// The `try_*` methods never wait. They return [`WouldBlock`](io::ErrorKind::WouldBlock) for what cannot be
/// done now, and [`watch`](Source::watch) tells when to try again. They borrow buffers and are done with them
/// when they return. The default implementations return [`Unsupported`](io::ErrorKind::Unsupported).
///
/// Dropping the last reference closes the socket. An operation in flight holds a reference.
pub trait Source: Send + Sync + fmt::Debug {
    /// Takes an operation. If it can be finished at once the driver returns it with its result, and no
    /// notification is needed.
    ///
    /// The driver finishes each operation that it keeps exactly once, unless [`cancel`](Source::cancel)
    /// returns it first.
    fn submit(&self, operation: InFlight) -> Submitted;

    /// Requests that an operation ends soon. Returns the operation if nothing of it has happened yet, as if
    /// it had not been submitted. Otherwise it is finished, or will be: with the bytes that were transferred,
    /// so that none are lost, or with an error. An unknown id is not an error: the result is `None`.
    fn cancel(&self, operation: OperationId) -> Option<InFlight>;

    /// Registers `waker` to be woken, once, when an attempt in this direction may succeed. Returns `None` if
    /// it may succeed now: the caller tries again. A caller that still waits passes its ticket, and only its
    /// waker is replaced; others pass [`Ticket::NONE`].
    fn watch(&self, interest: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket>;

    /// Registers `waker` before a first attempt, if the source already knows that the attempt would block.
    /// Returns `None` if that is not known: the caller tries.
    fn watch_untried(&self, interest: Interest, waker: &Waker) -> Option<Ticket> {
        let _ = (interest, waker);
        None
    }

    /// Removes the watcher with this ticket. Does nothing if it was woken.
    fn unwatch(&self, interest: Interest, ticket: Ticket);

    /// Reads the available bytes.
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let _ = buffer;
        Err(unsupported("bytes to read from this source"))
    }

    /// Reads the available bytes into several buffers, in order.
    fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match buffers.iter_mut().find(|buffer| !buffer.is_empty()) {
            Some(first) => self.try_read(first),
            None => self.try_read(&mut []),
        }
    }

    /// Reads the available bytes into a buffer that the driver lends.
    fn try_lease(&self) -> io::Result<Lease> {
        let mut lease = Lease::take();
        let read = self.try_read(lease.buffer_mut())?;
        lease.fill(read);
        Ok(lease)
    }

    /// Reads the available bytes into memory that need not be initialised. At the end of the stream nothing is
    /// filled.
    fn try_read_spare(&self, buffer: &mut SpareBuffer<'_>) -> io::Result<()> {
        let mut lease = Lease::take();
        let most = buffer.remaining().min(lease.buffer_mut().len());
        let read = self.try_read(&mut lease.buffer_mut()[..most])?;
        // A driver that reports more than fits is in error.
        lease.fill(read.min(most));
        buffer.put(&lease);
        Ok(())
    }

    /// Reads the available bytes without consuming them.
    fn try_peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let _ = buffer;
        Err(unsupported("bytes to peek at in this source"))
    }

    /// Writes as many bytes as fit into the kernel's buffer.
    fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        let _ = buffer;
        Err(unsupported("way to write to this source"))
    }

    /// Writes from several buffers, in order, as many bytes as fit into the kernel's buffer.
    fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match buffers.iter().find(|buffer| !buffer.is_empty()) {
            Some(first) => self.try_write(first),
            None => self.try_write(&[]),
        }
    }

    /// Calls `io`, which attempts something with the descriptor of this source, if it may succeed in this
    /// direction, and learns from its result: after [`WouldBlock`](io::ErrorKind::WouldBlock) the source is
    /// not ready until the next event. Returns `WouldBlock` without a call if the source is known to block.
    fn try_io(&self, interest: Interest, io: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let _ = interest;
        io()
    }

    /// Accepts a connection.
    fn try_accept(&self) -> io::Result<Accepted> {
        Err(unsupported("connections to accept from this source"))
    }

    /// Receives a datagram and the address of its sender. Bytes that do not fit into the buffer are lost.
    fn try_receive_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        let _ = buffer;
        Err(unsupported("datagrams in this source"))
    }

    /// Receives a datagram and the address of its sender, and leaves the datagram in the queue.
    fn try_peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        let _ = buffer;
        Err(unsupported("datagrams to peek at in this source"))
    }

    /// Sends a datagram.
    fn try_send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize> {
        let _ = (buffer, to);
        Err(unsupported("way to send datagrams from this source"))
    }

    /// Sets the peer: from now on datagrams are sent to, and received from, this address only.
    fn connect_datagrams(&self, to: &Address) -> io::Result<()> {
        let _ = to;
        Err(unsupported("datagrams in this source"))
    }

    /// Binds a stream to this local address, before it is connected.
    fn bind(&self, at: &Address) -> io::Result<()> {
        let _ = at;
        Err(unsupported("local addresses to choose for this source"))
    }

    /// Shuts down one direction, or both. Bytes that were written before are still delivered.
    fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        let _ = how;
        Err(unsupported("directions to shut down in this source"))
    }

    /// Returns the address of this socket.
    fn local_address(&self) -> io::Result<Address>;

    /// Returns the address of the peer.
    fn peer_address(&self) -> io::Result<Address> {
        Err(io::ErrorKind::NotConnected.into())
    }

    /// Sets an option.
    fn set_option(&self, option: SocketOption) -> io::Result<()> {
        Err(unsupported(&format!("option {option:?}")))
    }

    /// Returns the value of an option. The value in `option` is ignored.
    fn option(&self, option: SocketOption) -> io::Result<SocketOption> {
        Err(unsupported(&format!("option {option:?}")))
    }

    /// Joins a multicast group.
    fn join_multicast(&self, group: &MulticastGroup) -> io::Result<()> {
        let _ = group;
        Err(unsupported("multicast groups for this source"))
    }

    /// Leaves a multicast group.
    fn leave_multicast(&self, group: &MulticastGroup) -> io::Result<()> {
        let _ = group;
        Err(unsupported("multicast groups for this source"))
    }

    /// Returns the credentials of the process at the other end of a Unix stream.
    fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        Err(unsupported("credentials of peers"))
    }

    /// Takes the pending error of the socket, if there is one, and clears it.
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Duplicates the handle of the socket, for use with the standard library.
    fn duplicate(&self) -> io::Result<StandardSocket> {
        Err(unsupported("sockets of the standard library"))
    }

    /// Returns its descriptor, if it has one.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    /// Returns its handle, if it has one.
    #[cfg(windows)]
    fn handle(&self) -> Option<std::os::windows::io::BorrowedSocket<'_>> {
        None
    }
}

/// The result of [`Source::submit`].
#[derive(Debug)]
#[must_use = "an operation that is returned has a result"]
pub enum Submitted {
    /// The driver keeps the operation and will finish it.
    Kept,
    /// The operation is done, with this result.
    Done(InFlight, io::Result<usize>),
}

/// A connection that was accepted.
#[derive(Debug)]
pub struct Accepted {
    /// This end of it.
    pub source: Arc<dyn Source>,
    /// Where the other end is.
    pub peer: Address,
}
