//! The handshake of a stream. Its work is done in turns; in a turn nothing waits for the peer.
//!
//! A place in the limit of handshakes that a silent peer could keep would be taken by 256 silent peers, and nobody else would have
//! a turn for ten seconds. So a turn begins when there is something to work on, and ends one pass of the executor later: however
//! many peers come at once, the tasks of a context wait for no more than that number of handshakes before it is theirs again.

use core::future::poll_fn;
use core::task::{Context, Poll, ready};
use std::io;

use convoke_sync::Semaphore;
use convoke_task::checkpoint;
use futures_io::{AsyncRead, AsyncWrite};

use crate::buffer::Buffer;
use crate::error::truncated;
use crate::session::{Advanced, Connection, Request};
use crate::stream::{TlsStream, poll_receive};

/// The size of the header of a record.
const HEADER_BYTES: usize = 5;

/// Receives the first record of a client. It takes part in no limit yet: a client that sends nothing costs nothing but its
/// connection.
pub(crate) async fn first_record<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Buffer> {
    let mut received = Buffer::default();
    while !is_worth_a_turn(received.filled()) {
        poll_fn(|cx| poll_receive(stream, &mut received, cx)).await?;
    }
    // There may be many that wait for their turn.
    received.settle();
    Ok(received)
}

/// Returns true if the engine can do something with these bytes: they are a record, or the beginning of none.
fn is_worth_a_turn(received: &[u8]) -> bool {
    let Some((header, rest)) = received.split_at_checked(HEADER_BYTES) else { return false };
    let is_record = matches!(header[0], 20..=24) && header[1] == 3;
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    // More than the largest record: the engine refuses it.
    !is_record || rest.len() >= length || length > 18 * 1024
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Does the handshake, in which `received` has been received. Its work is done in turns, if there are any.
    pub(crate) async fn handshake(
        stream: S,
        connection: Connection,
        received: Buffer,
        turns: Option<&Semaphore>,
    ) -> io::Result<Self> {
        let mut this = Self::before_handshake(stream, connection, received);
        match this.shake(turns).await {
            Ok(()) => Ok(this),
            Err(error) => {
                if this.session().failure().is_some() {
                    // The peer learns why. If it cannot, the first error is the one that matters.
                    _ = this.close_after_failure().await;
                }
                Err(error)
            }
        }
    }

    async fn shake(&mut self, turns: Option<&Semaphore>) -> io::Result<()> {
        while !self.work_in_turn(turns).await? {
            poll_fn(|cx| self.poll_flight(cx)).await?;
        }
        poll_fn(|cx| self.poll_end(cx)).await
    }

    async fn work_in_turn(&mut self, turns: Option<&Semaphore>) -> io::Result<bool> {
        let Some(turns) = turns else { return self.work() };
        let _turn = turns.acquire().await;
        let worked = self.work();
        // The turn ends after all others of this context had theirs.
        checkpoint().await;
        worked
    }

    /// Processes what was received. Returns true if the peer has nothing more to say.
    fn work(&mut self) -> io::Result<bool> {
        while self.session().state().is_handshaking() {
            match self.session_mut().advance(Request::Nothing, &mut [])? {
                Advanced::PeerClosed | Advanced::Closed => return Err(truncated()),
                Advanced::Data(_) => {}
                Advanced::Handshaking | Advanced::Idle if self.session().state().is_handshaking() => {
                    return Ok(false);
                }
                Advanced::Handshaking | Advanced::Idle => {}
            }
        }
        // The last flight is still with the engine.
        self.advance_to_idle(Request::Nothing)?;
        Ok(true)
    }

    /// Sends our part, and receives some of the peer's.
    fn poll_flight(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The peer may have to send all of its flight before it reads.
        if let Poll::Ready(Err(error)) = self.poll_send(cx) {
            return Poll::Ready(Err(error));
        }
        ready!(self.poll_receive(cx))?;
        Poll::Ready(Ok(()))
    }

    /// Sends the last part.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.poll_send(cx) {
            // A client that has nothing to read yet does not make room for tickets.
            Poll::Pending if self.session().is_peer_served() => Poll::Ready(Ok(())),
            sent => sent,
        }
    }
}
