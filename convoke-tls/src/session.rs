//! The TLS state of a connection, without I/O: records go in and out through buffers.

use rustls::CommonState;
use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
};

use crate::buffer::Buffer;
use crate::error::TlsError;

pub use rustls::ProtocolVersion;

/// The maximum number of plaintext bytes in a record.
pub(crate) const RECORD_BYTES: usize = 16 * 1024;

/// The maximum number of received bytes that wait to be processed. rustls accepts handshake messages of at most 64 KiB, which may
/// come in several records.
pub(crate) const INCOMING_BYTES: usize = 96 * 1024;

/// The two roles. Boxed: both are larger than all the rest of a stream.
pub(crate) enum Connection {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
}

/// The state of one connection.
pub(crate) struct Session {
    connection: Connection,
    /// Received records, the first of them perhaps incomplete.
    pub(crate) incoming: Buffer,
    /// Decrypted bytes that were not read yet.
    pub(crate) plain: Buffer,
    /// Records to send, in order.
    pub(crate) outgoing: Buffer,
    /// The peer has sent close_notify.
    pub(crate) is_peer_closed: bool,
    /// Our close_notify is in `outgoing`, or sent.
    pub(crate) is_closed: bool,
    /// The failure that ended the session; its alert is in `outgoing`, or sent.
    failure: Option<TlsError>,
}

/// A request for when the session can send application data.
#[derive(Clone, Copy)]
pub(crate) enum Request<'a> {
    Nothing,
    /// Encrypt these bytes, at most [`RECORD_BYTES`].
    Encrypt(&'a [u8]),
    CloseNotify,
}

/// How far [`Session::advance`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advanced {
    /// Bytes were decrypted; `n` of them lie in the caller's buffer, the rest in `plain`.
    Data(usize),
    /// The handshake needs input.
    Handshaking,
    /// All input is processed, and the request is fulfilled.
    Idle,
    /// The peer has sent close_notify.
    PeerClosed,
    /// Both sides have sent close_notify.
    Closed,
}

/// The result of one step of the engine.
enum Step {
    /// The engine goes on by itself.
    Again,
    Ended(Advanced),
}

impl Session {
    /// Creates the state of a connection. `incoming` was received before.
    pub(crate) fn new(connection: Connection, incoming: Buffer) -> Self {
        Self {
            connection,
            incoming,
            plain: Buffer::default(),
            outgoing: Buffer::default(),
            is_peer_closed: false,
            is_closed: false,
            failure: None,
        }
    }

    pub(crate) fn state(&self) -> &CommonState {
        match &self.connection {
            Connection::Client(connection) => connection,
            Connection::Server(connection) => connection,
        }
    }

    /// Returns true once the peer has all that it waits for, though `outgoing` may not be empty: a server of TLS 1.3 sends tickets
    /// for later sessions last.
    pub(crate) fn is_peer_served(&self) -> bool {
        let is_server = matches!(self.connection, Connection::Server(_));
        is_server && self.state().protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// Returns the size of the memory of all buffers.
    pub(crate) fn memory(&self) -> usize {
        self.incoming.memory() + self.plain.memory() + self.outgoing.memory()
    }

    pub(crate) fn failure(&self) -> Option<&TlsError> {
        self.failure.as_ref()
    }

    /// Processes received records until there is something to tell. Decrypted bytes go to `target`, and those that do not fit to
    /// `plain`.
    ///
    /// # Errors
    /// The failure of the session: this time and each time after. The alert for the peer is in `outgoing`.
    pub(crate) fn advance(&mut self, request: Request<'_>, target: &mut [u8]) -> Result<Advanced, TlsError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        loop {
            match self.step(request, target) {
                Ok(Step::Again) => {}
                Ok(Step::Ended(advanced)) => return Ok(advanced),
                Err(error) => return Err(self.fail(error)),
            }
        }
    }

    /// Ends the session, and encodes the alert that the engine has for the peer.
    fn fail(&mut self, error: rustls::Error) -> TlsError {
        // Only what it has to send: a session that has failed must not process more input.
        while self.state().wants_write() && self.step(Request::Nothing, &mut []).is_ok() {}
        let failure = TlsError::from(error);
        self.failure = Some(failure.clone());
        failure
    }

    fn step(&mut self, request: Request<'_>, target: &mut [u8]) -> Result<Step, rustls::Error> {
        let Self { connection, incoming, plain, outgoing, .. } = self;
        let received = incoming.filled_mut();
        let (discard, step) = match connection {
            Connection::Client(connection) => {
                step(connection.process_tls_records(received), request, outgoing, plain, target)
            }
            Connection::Server(connection) => {
                step(connection.process_tls_records(received), request, outgoing, plain, target)
            }
        };
        incoming.consume(discard);
        match step {
            Ok(Step::Ended(Advanced::PeerClosed)) => self.is_peer_closed = true,
            Ok(Step::Ended(Advanced::Idle)) if matches!(request, Request::CloseNotify) => {
                self.is_closed = true;
            }
            _ => {}
        }
        step
    }
}

/// Handles a state of the engine; returns the number of received bytes that it is done with, and what it did.
fn step<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    request: Request<'_>,
    outgoing: &mut Buffer,
    plain: &mut Buffer,
    target: &mut [u8],
) -> (usize, Result<Step, rustls::Error>) {
    let UnbufferedStatus { mut discard, state, .. } = status;
    let state = match state {
        Ok(state) => state,
        Err(error) => return (discard, Err(error)),
    };
    let step = match state {
        ConnectionState::ReadTraffic(mut traffic) => match traffic.next_record() {
            None => Ok(Step::Again),
            Some(Err(error)) => Err(error),
            Some(Ok(record)) => {
                discard += record.discard;
                let (now, later) = record.payload.split_at(record.payload.len().min(target.len()));
                target[..now.len()].copy_from_slice(now);
                plain.append(later);
                // An empty record is allowed, and is not the end of the stream.
                let is_empty = record.payload.is_empty();
                Ok(if is_empty { Step::Again } else { Step::Ended(Advanced::Data(now.len())) })
            }
        },
        ConnectionState::EncodeTlsData(mut data) => {
            append_record(outgoing, 0, |spare| match data.encode(spare) {
                Ok(length) => Ok(Ok(length)),
                Err(EncodeError::InsufficientSize(size)) => Ok(Err(size)),
                Err(error) => Err(rustls::Error::General(error.to_string())),
            })
            .map(|()| Step::Again)
        }
        ConnectionState::TransmitTlsData(data) => {
            // It is sent before all that is encrypted later: `outgoing` keeps the order.
            data.done();
            Ok(Step::Again)
        }
        ConnectionState::WriteTraffic(mut traffic) => {
            let written = match request {
                Request::Nothing => Ok(()),
                Request::Encrypt(bytes) => {
                    append_record(outgoing, bytes.len(), |spare| encrypted(traffic.encrypt(bytes, spare)))
                }
                Request::CloseNotify => {
                    append_record(outgoing, 0, |spare| encrypted(traffic.queue_close_notify(spare)))
                }
            };
            written.map(|()| Step::Ended(Advanced::Idle))
        }
        ConnectionState::BlockedHandshake => Ok(Step::Ended(Advanced::Handshaking)),
        ConnectionState::PeerClosed => Ok(Step::Ended(Advanced::PeerClosed)),
        ConnectionState::Closed => Ok(Step::Ended(Advanced::Closed)),
        // Early data, which our configurations do not allow: it can be replayed.
        state => Err(rustls::Error::General(format!("the state {state:?} is not supported"))),
    };
    (discard, step)
}

/// Lets `write` append to `outgoing`, a second time if it says how much space it needs.
fn append_record(
    outgoing: &mut Buffer,
    least: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<Result<usize, InsufficientSizeError>, rustls::Error>,
) -> Result<(), rustls::Error> {
    // More than the header and the tag of a record, so that small ones succeed at once.
    const OVERHEAD: usize = 128;
    let mut least = least + OVERHEAD;
    loop {
        match write(outgoing.spare(least))? {
            Ok(length) => {
                outgoing.fill(length);
                return Ok(());
            }
            Err(InsufficientSizeError { required_size }) => least = required_size.max(least + 1),
        }
    }
}

fn encrypted(
    result: Result<usize, EncryptError>,
) -> Result<Result<usize, InsufficientSizeError>, rustls::Error> {
    match result {
        Ok(length) => Ok(Ok(length)),
        Err(EncryptError::InsufficientSize(size)) => Ok(Err(size)),
        Err(error @ EncryptError::EncryptExhausted) => Err(rustls::Error::General(error.to_string())),
    }
}
