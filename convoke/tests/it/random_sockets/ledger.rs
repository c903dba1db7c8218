//! A record of what was written and read on a connection.

use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use convoke::net::TcpStream;

use crate::random_rounds::numbered;

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// True if an end was dropped before it had read everything: the kernel may reset the connection and lose
    /// bytes.
    may_reset: AtomicBool,
    /// One for each direction.
    ways: [Mutex<Way>; 2],
}

#[derive(Debug, Default)]
struct Way {
    /// The number of bytes written for certain.
    written: u64,
    /// The number of bytes that a dropped call may have written in addition.
    in_doubt: u64,
    heard: u64,
    has_ended: bool,
}

impl Ledger {
    fn way<R>(&self, way: usize, f: impl FnOnce(&mut Way) -> R) -> R {
        f(&mut self.ways[way].lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Fails unless this connection may have such an error.
    pub(crate) fn explains(&self, error: io::Error) {
        let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe, io::ErrorKind::NotConnected];
        let is_reset = kinds.contains(&error.kind());
        assert!(is_reset && self.may_reset.load(Ordering::Acquire), "nobody has reset it: {error}");
    }

    /// Checks that all written bytes were read once. Their order was checked when they were read.
    pub(crate) fn judge(&self) -> Judged {
        let may_reset = self.may_reset.load(Ordering::Acquire);
        for way in &self.ways {
            let way = way.lock().unwrap_or_else(PoisonError::into_inner);
            let most = way.written + way.in_doubt;
            assert!(way.heard <= most, "more was heard than was said: {way:?}");
            assert!(may_reset || (way.has_ended && way.written <= way.heard), "bytes were lost: {way:?}");
        }
        if may_reset { Judged::Reset } else { Judged::Whole }
    }
}

/// The way in which a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Whole,
    Reset,
}

/// A writer at one end. Dropping it shuts down that direction.
pub(crate) struct Speaker {
    pub(crate) stream: Arc<TcpStream>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) way: usize,
}

impl Speaker {
    /// Returns the next bytes to write.
    pub(crate) fn words(&self, length: usize) -> Vec<u8> {
        numbered(self.ledger.way(self.way, |way| way.written), length)
    }

    pub(crate) fn wrote(&self, length: u64) {
        self.ledger.way(self.way, |way| way.written += length);
    }

    pub(crate) fn may_have_written(&self, length: u64) {
        self.ledger.way(self.way, |way| way.in_doubt = length);
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        if let Err(error) = self.stream.shutdown(Shutdown::Write)
            && !thread::panicking()
        {
            self.ledger.explains(error);
        }
    }
}

/// A reader at one end.
pub(crate) struct Listener {
    pub(crate) stream: Arc<TcpStream>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) way: usize,
}

impl Listener {
    pub(crate) fn heard(&self, bytes: &[u8]) {
        self.ledger.way(self.way, |way| {
            let expected = numbered(way.heard, bytes.len());
            assert!(bytes == expected, "something else than was said, after {} bytes", way.heard);
            way.heard += bytes.len() as u64;
        });
    }

    pub(crate) fn has_ended(&self) {
        self.ledger.way(self.way, |way| way.has_ended = true);
    }
}

impl Drop for Listener {
    /// Records the drop before the stream is closed: later writes of the peer reset the connection. Shuts
    /// down both directions, or two ends that only write would wait for each other.
    fn drop(&mut self) {
        if !self.ledger.way(self.way, |way| way.has_ended) {
            self.ledger.may_reset.store(true, Ordering::Release);
            _ = self.stream.shutdown(Shutdown::Both);
        }
    }
}
