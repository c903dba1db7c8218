//! The reader that finds `ReadyForQuery` in the bytes of a server, against one that has all bytes at once. A connection returns to
//! the pool if this reader says that no transaction is open.
//!
//! The first byte of an input says whether TLS was asked for, the second one the size of the pieces that the others come in.

#[path = "../../../src/status.rs"]
#[allow(dead_code, unexpected_cfgs, reason = "a part of the crate, which uses all of it")]
mod status;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use status::{State, Status, Watched};
use tokio::io::{AsyncRead, ReadBuf};

/// The most bytes of a server that are looked at: what has been read is read again after each piece.
const MOST: usize = 2048;

pub(crate) fn target(input: &[u8]) {
    let Some((&[flags, size], bytes)) = input.split_first_chunk() else { return };
    let bytes = &bytes[..bytes.len().min(MOST)];
    for size in [size.into(), 1, MOST] {
        check(bytes, flags & 1 == 1, usize::max(size, 1));
    }
}

/// Reads the bytes in pieces, and compares what is known after each.
fn check(bytes: &[u8], asks_for_tls: bool, size: usize) {
    let status = Arc::new(Status::default());
    let mut stream = Watched::new(Pieces { left: bytes, size }, asks_for_tls, status.clone());
    let mut read = 0;
    while read < bytes.len() {
        let mut buffer = [0; MOST];
        let mut buffer = ReadBuf::new(&mut buffer);
        let polled = Pin::new(&mut stream).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer);
        assert!(matches!(polled, Poll::Ready(Ok(()))));
        assert_eq!(buffer.filled(), &bytes[read..][..buffer.filled().len()], "the bytes pass by unchanged");
        read += buffer.filled().len();
        // What tokio-postgres refuses ends the connection, and nobody asks for its state again.
        let Some(expected) = state_after(&bytes[..read], asks_for_tls) else { return };
        assert_eq!(status.get(), expected, "after {read} bytes, in pieces of {size}");
    }
}

/// Returns the state after these bytes of a server, or none if there is a message of a length that is impossible.
fn state_after(mut bytes: &[u8], asks_for_tls: bool) -> Option<State> {
    if asks_for_tls {
        match bytes.split_first() {
            // It encrypts, and is watched above.
            None | Some((b'S', _)) => return Some(State::InTransaction),
            Some((_, rest)) => bytes = rest,
        }
    }
    // Not known yet.
    let mut state = State::InTransaction;
    while let Some((&[kind, ref length @ ..], rest)) = bytes.split_first_chunk::<5>() {
        let body = usize::try_from(i32::from_be_bytes(*length)).ok()?.checked_sub(4)?;
        match (kind, body, rest.first()) {
            (b'Z', 1, Some(b'I')) => state = State::Idle,
            (b'Z', 1, Some(b'E')) => state = State::Failed,
            (b'Z', 1, None) => {}
            (b'Z', ..) => state = State::InTransaction,
            _ => {}
        }
        if rest.len() < body {
            break;
        }
        bytes = &rest[body..];
    }
    Some(state)
}

/// A stream that has its bytes in pieces.
struct Pieces<'a> {
    left: &'a [u8],
    size: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (piece, left) = self.left.split_at(self.size.min(self.left.len()).min(buffer.remaining()));
        buffer.put_slice(piece);
        self.left = left;
        Poll::Ready(Ok(()))
    }
}
