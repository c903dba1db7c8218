//! What was written and heard on a connection, and what may have become of it.

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
    /// Somebody has left before he had heard everything: the kernel may reset the connection, and what is under way is lost.
    may_reset: AtomicBool,
    /// There and back.
    ways: [Mutex<Way>; 2],
}

#[derive(Debug, Default)]
struct Way {
    /// So much was written for certain,
    written: u64,
    /// and perhaps so much more, by a call that was dropped and could not say.
    in_doubt: u64,
    heard: u64,
    has_ended: bool,
}

impl Ledger {
    fn way<R>(&self, way: usize, f: impl FnOnce(&mut Way) -> R) -> R {
        f(&mut self.ways[way].lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says whether an error is one that this connection may have.
    pub(crate) fn explains(&self, error: io::Error) {
        let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe, io::ErrorKind::NotConnected];
        let is_reset = kinds.contains(&error.kind());
        assert!(is_reset && self.may_reset.load(Ordering::Acquire), "nobody has reset it: {error}");
    }

    /// Whether all that was written was heard, once and in order. That the order is right was looked at before.
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

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Whole,
    Reset,
}

/// Who writes at one end. When it goes, that way is closed.
pub(crate) struct Speaker {
    pub(crate) stream: Arc<TcpStream>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) way: usize,
}

impl Speaker {
    /// What comes next.
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

/// Who reads at one end.
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
    /// Before the stream is closed: what is said to it from then on resets the connection. It is closed both ways, or two who
    /// only speak would wait for each other.
    fn drop(&mut self) {
        if !self.ledger.way(self.way, |way| way.has_ended) {
            self.ledger.may_reset.store(true, Ordering::Release);
            _ = self.stream.shutdown(Shutdown::Both);
        }
    }
}
