//! Attempts: what a source does at once, if it is not known to block, and what is learnt from it. They are what a server does most, so
//! what goes well is a few instructions around a system call, and all else is out of line.

use std::io;

use convoke_io::driver::{Interest, StandardSocket, unsupported};

use crate::calls;
use crate::readiness::{Blocked, Look};
use crate::socket::Socket;
use crate::state::State;

impl State {
    /// Does what may block, if an attempt may succeed.
    #[inline]
    pub(crate) fn attempt<T>(
        &self,
        interest: Interest,
        mut act: impl FnMut(&Socket, Look) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            let look = self.readiness.look(interest).map_err(|blocked| self.error_of(blocked))?;
            match act(&self.socket, look) {
                Err(error) => self.failed(interest, look, error)?,
                done => return done,
            }
        }
    }

    /// An attempt has failed: says so, unless it may be tried again.
    #[cold]
    fn failed(&self, interest: Interest, look: Look, error: io::Error) -> io::Result<()> {
        match error.kind() {
            // If an event came meanwhile it is ready still.
            io::ErrorKind::WouldBlock => self.readiness.would_block(interest, look),
            io::ErrorKind::Interrupted => {}
            _ => return Err(error),
        }
        Ok(())
    }

    /// No byte of a stream is to be transferred, which nobody needs to wait for. A datagram of no length is one.
    #[inline]
    pub(crate) fn asks_for_nothing(&self, length: usize) -> bool {
        length == 0 && calls::is_stream(&self.socket)
    }

    /// So much was read into this much room.
    #[inline]
    pub(crate) fn has_read(&self, read: usize, room: usize, look: Look) {
        // Nothing is left then, and the kernel will say when there is. An end, at zero, stays readable. Only here: a read from a
        // Unix stream also ends where a descriptor is handed over, and datagrams are short as it is. One comparison says that it is
        // more than nothing, and less than the room.
        if read.wrapping_sub(1) < room.wrapping_sub(1) && matches!(*self.socket, StandardSocket::TcpStream(_))
        {
            self.readiness.fell_short(Interest::Read, look);
        }
    }

    /// So much of so much was written.
    #[inline]
    pub(crate) fn has_written(&self, written: usize, length: usize, look: Look) {
        if written < length {
            self.readiness.fell_short(Interest::Write, look);
        }
    }

    /// What goes well, and that it would block, are said with as few instructions as can be. The rest is out of line, so that
    /// nothing here is called but the kernel.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return self.read_nothing();
        }
        let look = match self.readiness.look(Interest::Read) {
            Ok(look) => look,
            Err(Blocked::NotReady) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(Blocked::Shut) => return self.after_shut(),
        };
        match calls::read(&self.socket, buffer) {
            Ok(read) => {
                self.has_read(read, buffer.len(), look);
                Ok(read)
            }
            Err(error) => self.read_again(look, error, buffer),
        }
    }

    /// A datagram of no length is one; and of any other, nothing is wanted.
    #[cold]
    fn read_nothing(&self) -> io::Result<usize> {
        if self.asks_for_nothing(0) {
            return Ok(0);
        }
        if calls::is_listener(&self.socket) {
            return Err(unsupported("bytes to read from this source"));
        }
        self.attempt(Interest::Read, |socket, _| calls::read(socket, &mut []))
    }

    #[cold]
    fn read_again(&self, look: Look, error: io::Error, buffer: &mut [u8]) -> io::Result<usize> {
        if calls::is_listener(&self.socket) {
            return Err(unsupported("bytes to read from this source"));
        }
        self.failed(Interest::Read, look, error)?;
        self.attempt(Interest::Read, |socket, look| {
            let read = calls::read(socket, buffer)?;
            self.has_read(read, buffer.len(), look);
            Ok(read)
        })
    }

    /// As `read`.
    #[inline]
    pub(crate) fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return self.write_nothing();
        }
        let look = match self.readiness.look(Interest::Write) {
            Ok(look) => look,
            Err(Blocked::NotReady) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(Blocked::Shut) => return self.after_shut(),
        };
        match calls::write(&self.socket, buffer) {
            Ok(written) => {
                self.has_written(written, buffer.len(), look);
                Ok(written)
            }
            Err(error) => self.write_again(look, error, buffer),
        }
    }

    #[cold]
    fn write_nothing(&self) -> io::Result<usize> {
        if self.asks_for_nothing(0) {
            return Ok(0);
        }
        if calls::is_listener(&self.socket) {
            return Err(unsupported("room for bytes in this source"));
        }
        self.attempt(Interest::Write, |socket, _| calls::write(socket, &[]))
    }

    #[cold]
    fn write_again(&self, look: Look, error: io::Error, buffer: &[u8]) -> io::Result<usize> {
        if calls::is_listener(&self.socket) {
            return Err(unsupported("room for bytes in this source"));
        }
        self.failed(Interest::Write, look, error)?;
        self.attempt(Interest::Write, |socket, look| {
            let written = calls::write(socket, buffer)?;
            self.has_written(written, buffer.len(), look);
            Ok(written)
        })
    }

    #[inline]
    fn error_of(&self, blocked: Blocked) -> io::Error {
        match blocked {
            Blocked::NotReady => io::ErrorKind::WouldBlock.into(),
            Blocked::Shut => self.why_shut(),
        }
    }

    #[cold]
    #[inline(never)]
    fn after_shut(&self) -> io::Result<usize> {
        Err(self.why_shut())
    }
}
