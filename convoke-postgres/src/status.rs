//! The state of a session as its server reports it: each `ReadyForQuery` says whether a transaction is open.
//! tokio-postgres reads over that byte, so it is read here, in the bytes that pass by.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, IoSlice};
use std::sync::Arc;

use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Contents of the last `ReadyForQuery` of a session.
#[derive(Debug, Default)]
pub(crate) struct Status(AtomicU8);

/// State of a session between two statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No transaction is open.
    Idle,
    /// A transaction is open, or the state is not known.
    InTransaction,
    /// A transaction is open in which a statement has failed: all that it can do is to roll back.
    Failed,
}

impl Status {
    pub(crate) fn get(&self) -> State {
        match self.0.load(Ordering::Acquire) {
            b'I' => State::Idle,
            b'E' => State::Failed,
            _ => State::InTransaction,
        }
    }
}

/// A stream from a server whose `ReadyForQuery` messages are noted.
pub(crate) struct Watched<S> {
    stream: S,
    reader: Reader,
    status: Arc<Status>,
    /// If set, a shutdown completes when the server has ended the connection, too.
    awaits_end: bool,
    is_shut_down: bool,
}

/// Finds the messages in the bytes from a server.
#[derive(Debug)]
enum Reader {
    /// The server was asked for TLS: one byte answers that.
    TlsAnswer,
    /// The bytes are encrypted, and are watched above.
    Off,
    /// The first bytes of a message: its kind, and its length.
    Head { bytes: [u8; HEAD], filled: usize },
    /// The one byte of a `ReadyForQuery`.
    Ready,
    /// The rest of another message.
    Body { left: usize },
}

/// The length of a message's kind and length.
const HEAD: usize = 5;

/// The kind of the message by which a server says that it waits for a statement.
const READY_FOR_QUERY: u8 = b'Z';

/// The state before the first `ReadyForQuery`, and after one that is malformed.
const NOT_KNOWN: u8 = 0;

impl Reader {
    const START: Self = Self::Head { bytes: [0; HEAD], filled: 0 };

    fn read(&mut self, mut bytes: &[u8], status: &Status) {
        while let Some((&first, rest)) = bytes.split_first() {
            match self {
                Self::Off => return,
                Self::TlsAnswer => {
                    *self = if first == b'S' { Self::Off } else { Self::START };
                    bytes = rest;
                }
                Self::Head { bytes: head, filled } => {
                    let taken = (HEAD - *filled).min(bytes.len());
                    head[*filled..*filled + taken].copy_from_slice(&bytes[..taken]);
                    *filled += taken;
                    bytes = &bytes[taken..];
                    if *filled == HEAD {
                        let [kind, length @ ..] = *head;
                        // The length counts itself. One that is too small is refused by tokio-postgres.
                        let left = (u32::from_be_bytes(length) as usize).saturating_sub(HEAD - 1);
                        *self = match (kind, left) {
                            (READY_FOR_QUERY, 1) => Self::Ready,
                            (_, 0) => Self::START,
                            _ => Self::Body { left },
                        };
                        if kind == READY_FOR_QUERY && left != 1 {
                            // tokio-postgres refuses it and ends the connection: none of its bytes may count as idle.
                            status.0.store(NOT_KNOWN, Ordering::Release);
                        }
                    }
                }
                Self::Ready => {
                    status.0.store(first, Ordering::Release);
                    bytes = rest;
                    *self = Self::START;
                }
                Self::Body { left } => {
                    let taken = (*left).min(bytes.len());
                    *left -= taken;
                    bytes = &bytes[taken..];
                    if *left == 0 {
                        *self = Self::START;
                    }
                }
            }
        }
    }
}

impl<S> Watched<S> {
    /// Watches a stream. If `asks_for_tls`, the first byte of the server answers the question for TLS; if it
    /// says yes, what follows is watched above TLS.
    pub(crate) fn new(stream: S, asks_for_tls: bool, status: Arc<Status>) -> Self {
        let reader = if asks_for_tls { Reader::TlsAnswer } else { Reader::START };
        Self { stream, reader, status, awaits_end: false, is_shut_down: false }
    }

    /// Carries a stream that is encrypted from its first byte, and watches nothing.
    pub(crate) fn off(stream: S, status: Arc<Status>) -> Self {
        Self { stream, reader: Reader::Off, status, awaits_end: false, is_shut_down: false }
    }

    /// Lets a shutdown wait until the server has ended the connection, too: then it has acted on what was sent.
    pub(crate) fn awaiting_end(mut self) -> Self {
        self.awaits_end = true;
        self
    }

    /// Returns what is watched.
    #[cfg(feature = "tls")]
    pub(crate) fn status(&self) -> &Arc<Status> {
        &self.status
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        this.reader.read(&buffer.filled()[before..], &this.status);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_shut_down {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            this.is_shut_down = true;
        }
        if this.awaits_end {
            let mut scratch = [0; 64];
            loop {
                let mut scratch = ReadBuf::new(&mut scratch);
                // An error ends the connection as well.
                match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut scratch)) {
                    Ok(()) if !scratch.filled().is_empty() => {}
                    Ok(()) | Err(_) => break,
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}
