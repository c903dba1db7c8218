//! Attempts: calls that a source makes at once if it is not known to block, and what `Readiness` learns from
//! the result. They are the hot path of a server: success is a few instructions around a system call, and
//! everything else is out of line.

use std::io;

use convoke_io::driver::{Interest, StandardSocket, unsupported};

use super::state::SourceState;
use crate::calls;
use crate::readiness::{Blocked, Checked};
use crate::socket::Socket;

impl SourceState {
    /// Makes a call that may block, if it may succeed. Repeats it while events come in between.
    #[inline]
    pub(crate) fn attempt<T>(
        &self,
        interest: Interest,
        mut act: impl FnMut(&Socket, Checked) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            let checked = self.check(interest)?;
            match act(&self.socket, checked) {
                Err(error) => self.handle_failure(interest, checked, error)?,
                done => return done,
            }
        }
    }

    /// Returns the state of the readiness, or the error of a call that need not be made. Not part of `attempt`, of which there are
    /// many instances.
    fn check(&self, interest: Interest) -> io::Result<Checked> {
        self.readiness.check(interest).map_err(|blocked| match blocked {
            Blocked::NotReady => io::ErrorKind::WouldBlock.into(),
            Blocked::Shut => self.why_shut(),
        })
    }

    /// Reports a failed attempt to `readiness`. Returns the error unless the attempt is to be repeated.
    #[cold]
    fn handle_failure(&self, interest: Interest, checked: Checked, error: io::Error) -> io::Result<()> {
        match error.kind() {
            // If an event came after the check, the source stays ready.
            io::ErrorKind::WouldBlock => self.readiness.would_block(interest, checked),
            io::ErrorKind::Interrupted => {}
            _ => return Err(error),
        }
        Ok(())
    }

    /// Returns true for a transfer of no bytes on a stream, which never waits. An empty datagram is a
    /// datagram, and may wait.
    #[inline]
    pub(crate) fn is_empty_transfer(&self, length: usize) -> bool {
        length == 0 && calls::is_stream(&self.socket)
    }

    /// Reports that `read` bytes were read into a buffer of length `length`.
    #[inline]
    pub(crate) fn report_read(&self, read: usize, length: usize, checked: Checked) {
        // A short read of TCP means that nothing is left, and the kernel reports when there is more. The end
        // of the stream (0) stays readable. TCP only: a read from a Unix stream also stops where a descriptor
        // is passed, and datagrams are short anyway. One comparison checks 0 < read < length.
        if read.wrapping_sub(1) < length.wrapping_sub(1)
            && matches!(*self.socket, StandardSocket::TcpStream(_))
        {
            self.readiness.fell_short(Interest::Read, checked);
        }
    }

    /// Reports that `written` of `length` bytes were written.
    #[inline]
    pub(crate) fn report_written(&self, written: usize, length: usize, checked: Checked) {
        if written < length {
            self.readiness.fell_short(Interest::Write, checked);
        }
    }

    /// Reads. Success and `WouldBlock` take as few instructions as possible; the rest is out of line, so that
    /// this function calls nothing but the kernel.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return self.read_empty();
        }
        let checked = match self.readiness.check(Interest::Read) {
            Ok(checked) => checked,
            Err(Blocked::NotReady) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(Blocked::Shut) => return self.after_shut(),
        };
        match calls::read(&self.socket, buffer) {
            Ok(read) => {
                self.report_read(read, buffer.len(), checked);
                Ok(read)
            }
            Err(error) => self.retry_read(checked, error, buffer),
        }
    }

    /// Reads into an empty buffer: nothing from a stream, but a whole datagram from a datagram socket.
    #[cold]
    fn read_empty(&self) -> io::Result<usize> {
        if self.is_empty_transfer(0) {
            return Ok(0);
        }
        if calls::is_listener(&self.socket) {
            return Err(unsupported("bytes to read from this source"));
        }
        self.attempt(Interest::Read, |socket, _| calls::read(socket, &mut []))
    }

    #[cold]
    fn retry_read(&self, checked: Checked, error: io::Error, buffer: &mut [u8]) -> io::Result<usize> {
        if calls::is_listener(&self.socket) {
            return Err(unsupported("bytes to read from this source"));
        }
        self.handle_failure(Interest::Read, checked, error)?;
        self.attempt(Interest::Read, |socket, checked| {
            let read = calls::read(socket, buffer)?;
            self.report_read(read, buffer.len(), checked);
            Ok(read)
        })
    }

    /// Writes. Inlined for the fast path, like `read`.
    #[inline]
    pub(crate) fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return self.write_empty();
        }
        let checked = match self.readiness.check(Interest::Write) {
            Ok(checked) => checked,
            Err(Blocked::NotReady) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(Blocked::Shut) => return self.after_shut(),
        };
        match calls::write(&self.socket, buffer) {
            Ok(written) => {
                self.report_written(written, buffer.len(), checked);
                Ok(written)
            }
            Err(error) => self.retry_write(checked, error, buffer),
        }
    }

    #[cold]
    fn write_empty(&self) -> io::Result<usize> {
        if self.is_empty_transfer(0) {
            return Ok(0);
        }
        if calls::is_listener(&self.socket) {
            return Err(unsupported("way to write to this source"));
        }
        self.attempt(Interest::Write, |socket, _| calls::write(socket, &[]))
    }

    #[cold]
    fn retry_write(&self, checked: Checked, error: io::Error, buffer: &[u8]) -> io::Result<usize> {
        if calls::is_listener(&self.socket) {
            return Err(unsupported("way to write to this source"));
        }
        self.handle_failure(Interest::Write, checked, error)?;
        self.attempt(Interest::Write, |socket, checked| {
            let written = calls::write(socket, buffer)?;
            self.report_written(written, buffer.len(), checked);
            Ok(written)
        })
    }

    #[cold]
    #[inline(never)]
    fn after_shut(&self) -> io::Result<usize> {
        Err(self.why_shut())
    }
}
