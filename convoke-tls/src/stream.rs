//! The TLS stream: moves bytes between its session and the stream below.

use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, IoSlice};

use convoke_core::raw::budget;
use convoke_net::stream::{Linger, lingering_close};
use convoke_task::{AsyncClose, Exit};
use futures_io::{AsyncRead, AsyncWrite};

use crate::buffer::{BUFFER_BYTES, Buffer};
use crate::error::{truncated, write_after_close};
use crate::session::{Advanced, Connection, INCOMING_BYTES, ProtocolVersion, RECORD_BYTES, Request, Session};

/// The limits of the close after a failure: the alert is delivered, and no more.
const AFTER_FAILURE: Linger = Linger::new().time(core::time::Duration::from_secs(1)).bytes(1 << 20);

/// A TLS connection over the stream `S`. It implements the traits of `futures-io`, so `convoke::io` reads, writes and
/// copies it.
///
/// Bytes that a write has accepted are encrypted, and sent as far as the stream below takes them. The rest is
/// sent by the next read, write, flush or close. A write that is stopped loses nothing: its rest stays in the
/// stream.
///
/// Reading returns zero only after the peer's close_notify. A connection that merely ends is an error of the kind
/// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof): an attacker may have cut it.
///
/// [`using`](convoke_task::using()) the stream closes it on every exit: it sends the rest and close_notify, then
/// reads on for a limited time, so that what was written is delivered. A stream that is merely dropped does
/// none of that.
///
/// An idle stream has no buffers.
pub struct TlsStream<S> {
    stream: S,
    session: Session,
    server_name: Option<Box<str>>,
}

impl<S> TlsStream<S> {
    /// Returns the stream below. Bytes that are written to it directly break the connection.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Returns the protocol that both sides have agreed on by ALPN.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.session.state().alpn_protocol()
    }

    /// Returns the name of the server that the client asked for (SNI); `None` on the client's side.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Wraps a stream before its handshake. `received` was read from it.
    pub(crate) fn before_handshake(stream: S, connection: Connection, received: Buffer) -> Self {
        Self { stream, session: Session::new(connection, received), server_name: None }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    pub(crate) fn set_server_name(&mut self, name: Option<Box<str>>) {
        self.server_name = name;
    }

    /// Returns the version of the protocol that is used.
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.session.state().protocol_version()
    }

    /// Returns true if the handshake has resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.session.state().handshake_kind() == Some(rustls::HandshakeKind::Resumed)
    }

    /// Returns the certificates of the peer in DER, its own first; empty if it has sent none.
    pub fn peer_certificates(&self) -> Vec<&[u8]> {
        let certificates = self.session.state().peer_certificates().unwrap_or_default();
        certificates.iter().map(AsRef::as_ref).collect()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Closes the stream so that what was written is delivered: sends the rest and close_notify, then reads and discards until
    /// the peer ends, or until a limit is reached. [`using`](convoke_task::using()) a stream does this with the
    /// default limits.
    ///
    /// - *Completes with* `()`, also if a limit was reached; an error of the connection; or stopped.
    /// - *If dropped*, close_notify may have been sent or not.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::io::Linger;
    /// use convoke::net::TcpStream;
    /// use convoke_tls::TlsStream;
    ///
    /// async fn hang_up(stream: TlsStream<TcpStream>) -> std::io::Result<()> {
    ///     stream.close_with(Linger::new().time(Duration::from_secs(2))).await
    /// }
    /// ```
    pub async fn close_with(mut self, linger: Linger) -> io::Result<()> {
        if self.session.failure().is_some() {
            return self.close_after_failure().await;
        }
        lingering_close(&mut self, linger).await
    }

    /// Sends the alert of a session that has failed, and closes the stream below.
    pub(crate) async fn close_after_failure(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_send(cx)).await?;
        lingering_close(&mut self.stream, AFTER_FAILURE).await
    }

    /// Processes all that was received; what is decrypted waits in `plain`. Then fulfils the request.
    pub(crate) fn advance_to_idle(&mut self, request: Request<'_>) -> io::Result<Advanced> {
        loop {
            match self.session.advance(request, &mut [])? {
                Advanced::Data(_) | Advanced::PeerClosed => {}
                end => return Ok(end),
            }
        }
    }

    /// Sends `outgoing`.
    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outgoing = &mut self.session.outgoing;
        while !outgoing.is_empty() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, outgoing.filled()))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => outgoing.consume(written),
            }
        }
        outgoing.release_if_empty();
        Poll::Ready(Ok(()))
    }

    /// Reads from the stream below to `incoming`.
    pub(crate) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_receive(&mut self.stream, &mut self.session.incoming, cx)
    }

    /// Reads plaintext. `writing` is the context of what is sent meanwhile: for halves of two tasks it wakes both.
    pub(crate) fn poll_read_with(
        &mut self,
        cx: &mut Context<'_>,
        writing: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if target.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            if !self.session.plain.is_empty() {
                let taken = self.session.plain.take_into(target);
                self.session.plain.release_if_empty();
                return Poll::Ready(Ok(taken));
            }
            if self.session.is_peer_closed {
                return Poll::Ready(Ok(0));
            }
            let advanced = self.session.advance(Request::Nothing, target);
            // An answer of the protocol, an alert, the rest of a write. If it cannot be sent the next write fails.
            let sent = self.poll_send(writing);
            match advanced {
                Err(failure) => return Poll::Ready(Err(failure.into())),
                Ok(Advanced::Data(count)) => {
                    self.session.incoming.release_if_empty();
                    return Poll::Ready(Ok(count));
                }
                Ok(Advanced::PeerClosed | Advanced::Closed) => self.session.is_peer_closed = true,
                Ok(Advanced::Handshaking | Advanced::Idle) => {
                    // A peer that makes us answer and does not read is not read either.
                    if sent.is_pending() && self.session.outgoing.filled().len() > INCOMING_BYTES {
                        return Poll::Pending;
                    }
                    ready!(self.poll_receive(cx))?;
                }
            }
        }
    }

    /// Encrypts a record of what `write` has in its buffer, and sends as much of it as the stream below takes.
    fn poll_write_record(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if self.session.is_closed {
            return Poll::Ready(Err(write_after_close()));
        }
        ready!(self.poll_send(cx))?;
        let record = &bytes[..bytes.len().min(RECORD_BYTES)];
        match self.advance_to_idle(Request::Encrypt(record))? {
            Advanced::Idle => {}
            _ => return Poll::Ready(Err(write_after_close())),
        }
        // These bytes are accepted: what is not sent now is sent later.
        match self.poll_send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(record.len())),
        }
    }

    fn poll_write_gathered(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut used = buffers.iter().filter(|buffer| !buffer.is_empty());
        let Some(first) = used.next() else { return Poll::Ready(Ok(0)) };
        if first.len() >= RECORD_BYTES || used.next().is_none() {
            return self.poll_write_record(cx, first);
        }
        // Before the copy, which would be in vain.
        ready!(self.poll_send(cx))?;
        let mut gathered = Buffer::default();
        for buffer in buffers {
            let free = RECORD_BYTES - gathered.filled().len();
            gathered.append(&buffer[..buffer.len().min(free)]);
        }
        self.poll_write_record(cx, gathered.filled())
    }
}

/// Reads from a stream to a buffer of records. A buffer that waits keeps no more memory than the bytes that are in it.
pub(crate) fn poll_receive<S: AsyncRead + Unpin>(
    stream: &mut S,
    incoming: &mut Buffer,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let waiting = incoming.filled().len();
    if waiting >= INCOMING_BYTES {
        return Poll::Ready(Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("TLS failed: the peer has sent {waiting} bytes that make up no message"),
        )));
    }
    // A record that has begun fits into what is leased. More is needed only for long handshake messages.
    let least = if waiting < BUFFER_BYTES { BUFFER_BYTES - waiting } else { RECORD_BYTES };
    let received = Pin::new(stream).poll_read(cx, incoming.spare(least));
    match received {
        Poll::Ready(Ok(0)) => {
            incoming.release_if_empty();
            Poll::Ready(Err(truncated()))
        }
        Poll::Ready(Ok(received)) => {
            incoming.fill(received);
            Poll::Ready(Ok(()))
        }
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        Poll::Pending => {
            incoming.settle();
            Poll::Pending
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        // A record has enough bytes for many reads that need not wait.
        budget::poll_in_turn(cx, |cx| {
            let mut writing = Context::from_waker(cx.waker());
            self.get_mut().poll_read_with(cx, &mut writing, buffer)
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        budget::poll_in_turn(cx, |cx| self.get_mut().poll_write_record(cx, buffer))
    }

    /// Writes several buffers as one record: the head and the body of a message cost one encryption and one system call.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        budget::poll_in_turn(cx, |cx| self.get_mut().poll_write_gathered(cx, buffers))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        budget::poll_in_turn(cx, |cx| {
            let this = self.get_mut();
            ready!(this.poll_send(cx))?;
            Pin::new(&mut this.stream).poll_flush(cx)
        })
    }

    /// Sends the rest and close_notify, then closes the stream below.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.session.is_closed && this.session.failure().is_none() {
            // A session that fails here has an alert for the peer, instead of close_notify.
            _ = this.advance_to_idle(Request::CloseNotify);
        }
        ready!(this.poll_send(cx))?;
        Pin::new(&mut this.stream).poll_close(cx)
    }
}

#[diagnostic::do_not_recommend]
impl<S: AsyncRead + AsyncWrite + Unpin + Send> AsyncClose for TlsStream<S> {
    type Error = io::Error;

    /// Closes the stream with the default limits: see [`close_with`](TlsStream::close_with). If the body failed, its error is
    /// kept: a broken connection does not close well either.
    async fn close(self, exit: Exit) -> io::Result<()> {
        let closed = self.close_with(Linger::new()).await;
        if matches!(exit, Exit::Error) { Ok(()) } else { closed }
    }
}

impl<S: fmt::Debug> fmt::Debug for TlsStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsStream")
            .field("stream", &self.stream)
            .field("version", &self.version())
            .field("is_peer_closed", &self.session.is_peer_closed)
            .field("is_closed", &self.session.is_closed)
            .field("buffer_bytes", &self.session.memory())
            .finish_non_exhaustive()
    }
}
