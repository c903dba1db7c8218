//! A source: a socket, as its driver sees it. What can be done at once is tried; what may take time is submitted.

use core::fmt;
use core::task::Waker;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;

use super::lease::Lease;
use super::{Address, InFlight, Interest, OperationId, SocketOption, StandardSocket, Ticket, unsupported};

/// Something that can be read from, written to, accepted from. It knows its driver; whoever uses it does not.
///
/// The calls that begin with `try_` never wait: what cannot be done now is [`WouldBlock`](io::ErrorKind::WouldBlock), and
/// [`watch`](Source::watch) says when to try again. They take borrowed buffers, for they are done with
/// them when they return. The default of each says that the source is not made for it.
///
/// Dropping the last reference closes it. What is in flight holds one.
pub trait Source: Send + Sync + fmt::Debug {
    /// Takes an operation. One that can be finished at once is handed back with its result, so that nobody needs to be told.
    ///
    /// The driver finishes each operation once that it has kept, unless [`cancel`](Source::cancel) has handed it back before.
    fn submit(&self, operation: InFlight) -> Submitted;

    /// Asks for an operation to end soon. If nothing of it has happened yet it is handed back, and it is as if it had not been
    /// submitted. Otherwise it was finished, or will be: with what has happened, so that no byte that was transferred
    /// is lost, or with an error. One that is not there is not an error.
    fn cancel(&self, operation: OperationId) -> Option<InFlight>;

    /// Wakes the waker, once, when an attempt in this direction may succeed. `None` if one may now: the caller tries again. Who has
    /// watched before, and was not woken, says his ticket, and only his waker changes.
    fn watch(&self, interest: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket>;

    /// The same for one who has not tried yet, if an attempt is known to block, by what the source remembers. `None` also if that is
    /// not known: the caller tries.
    fn watch_untried(&self, interest: Interest, waker: &Waker) -> Option<Ticket> {
        let _ = (interest, waker);
        None
    }

    /// Who has this ticket waits no longer.
    fn unwatch(&self, interest: Interest, ticket: Ticket);

    /// Reads what is there.
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let _ = buffer;
        Err(unsupported("bytes to read from this source"))
    }

    /// Reads what is there, into one buffer after the other.
    fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match buffers.iter_mut().find(|buffer| !buffer.is_empty()) {
            Some(first) => self.try_read(first),
            None => self.try_read(&mut []),
        }
    }

    /// Reads what is there into a buffer that the driver lends.
    fn try_lease(&self) -> io::Result<Lease> {
        let mut lease = Lease::take();
        let read = self.try_read(lease.room())?;
        lease.fill(read);
        Ok(lease)
    }

    /// Reads what is there, and leaves it there.
    fn try_peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let _ = buffer;
        Err(unsupported("bytes to look at in this source"))
    }

    /// Writes what there is room for.
    fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        let _ = buffer;
        Err(unsupported("room for bytes in this source"))
    }

    /// Writes what there is room for, from one buffer after the other.
    fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match buffers.iter().find(|buffer| !buffer.is_empty()) {
            Some(first) => self.try_write(first),
            None => self.try_write(&[]),
        }
    }

    /// Takes a connection.
    fn try_accept(&self) -> io::Result<Accepted> {
        Err(unsupported("connections to accept from this source"))
    }

    /// Takes a datagram, and who sent it. What does not fit into the buffer is lost.
    fn try_receive_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        let _ = buffer;
        Err(unsupported("datagrams in this source"))
    }

    /// The same, and leaves it there.
    fn try_peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        let _ = buffer;
        Err(unsupported("datagrams to look at in this source"))
    }

    /// Sends a datagram.
    fn try_send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize> {
        let _ = (buffer, to);
        Err(unsupported("room for datagrams in this source"))
    }

    /// From now on datagrams go to, and come from, this address.
    fn connect_datagrams(&self, to: &Address) -> io::Result<()> {
        let _ = to;
        Err(unsupported("datagrams in this source"))
    }

    /// Ends one direction, or both. What was written before is delivered.
    fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        let _ = how;
        Err(unsupported("directions that could be ended"))
    }

    /// Where it is.
    fn local_address(&self) -> io::Result<Address>;

    /// Where its peer is.
    fn peer_address(&self) -> io::Result<Address> {
        Err(io::ErrorKind::NotConnected.into())
    }

    /// Sets an option.
    fn set_option(&self, option: SocketOption) -> io::Result<()> {
        Err(unsupported(&format!("option {option:?}")))
    }

    /// What an option is set to; the value that is given does not matter.
    fn option(&self, option: SocketOption) -> io::Result<SocketOption> {
        Err(unsupported(&format!("option {option:?}")))
    }

    /// The error that the kernel has kept for it, if any; it is kept no longer.
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Another handle of the same socket, for the standard library.
    fn duplicate(&self) -> io::Result<StandardSocket> {
        Err(unsupported("sockets of the standard library"))
    }

    /// Its descriptor, if it has one.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    /// Its handle, if it has one.
    #[cfg(windows)]
    fn handle(&self) -> Option<std::os::windows::io::BorrowedSocket<'_>> {
        None
    }
}

/// What came of submitting an operation.
#[derive(Debug)]
#[must_use = "an operation that is handed back has a result"]
pub enum Submitted {
    /// The driver has it.
    Kept,
    /// It is finished.
    Done(InFlight, io::Result<usize>),
}

/// A connection that was taken.
#[derive(Debug)]
pub struct Accepted {
    /// This end of it.
    pub source: Arc<dyn Source>,
    /// Where the other end is.
    pub peer: Address,
}
