//! The error of a client: what failed, where, and whether the server may have worked on the request.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use http::StatusCode;
use http_body_util::LengthLimitError;

use super::origin::Origin;
use crate::report::{AnyError, Chain};

/// A step of a request, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The request was made. It cannot be sent as it is.
    Request,
    /// The request waits for a connection: all that it may use are busy, or one is opened.
    Wait,
    /// The name of the host is looked up, and a connection is opened.
    Connect,
    /// A proxy opens a tunnel.
    Proxy,
    /// The TLS handshake.
    Tls,
    /// The request is sent, and the head of the response is awaited.
    Head,
    /// The body of the response is read.
    Body,
    /// A redirect is followed.
    Redirect,
    /// The response was there, and its status was taken for an error: see
    /// [`Response::error_for_status`](super::Response::error_for_status).
    Status,
}

/// The error of a request, of the body of its response, and of an upgrade. Clones are the same error.
///
/// It prints as one line, with its causes.
///
/// ```
/// use convoke_http::{Client, ClientError};
///
/// /// Books a seat, and says whether it may be tried again.
/// async fn book(client: &Client) -> Result<(), &'static str> {
///     match client.post("http://theatre/seats/7").send().await {
///         Ok(_) => Ok(()),
///         Err(error) if error.may_have_been_processed() => {
///             Err("ask whether the seat is booked")
///         }
///         Err(error) if error.is_timeout() => Err("try again later"),
///         Err(_) => Err("try again"),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct ClientError {
    shared: Arc<ErrorParts>,
}

#[derive(Debug)]
struct ErrorParts {
    phase: Phase,
    cause: Cause,
    origin: Option<Origin>,
    may_have_been_processed: bool,
}

/// The cause of an error.
#[derive(Debug)]
pub(super) enum Cause {
    /// Something that needs no source.
    Said(&'static str),
    /// A time limit, and its name.
    Time(&'static str, Duration),
    /// The client was closed.
    Closed,
    /// The body is larger than this.
    TooLarge(usize, LengthLimitError),
    /// The server has answered with this.
    Status(StatusCode),
    /// An error below.
    Failed(AnyError),
}

impl ClientError {
    pub(super) fn new(phase: Phase, cause: Cause) -> Self {
        Self { shared: Arc::new(ErrorParts { phase, cause, origin: None, may_have_been_processed: false }) }
    }

    pub(super) fn failed(phase: Phase, error: impl Into<AnyError>) -> Self {
        Self::new(phase, Cause::Failed(error.into()))
    }

    pub(super) fn request(error: impl Into<AnyError>) -> Self {
        Self::failed(Phase::Request, error)
    }

    /// Returns the error with the origin that the request went to, and whether that may have processed the request.
    pub(super) fn of(self, origin: &Origin, may_have_been_processed: bool) -> Self {
        match Arc::try_unwrap(self.shared) {
            Ok(shared) if shared.origin.is_none() => Self {
                shared: Arc::new(ErrorParts {
                    origin: Some(origin.clone()),
                    may_have_been_processed,
                    ..shared
                }),
            },
            Ok(shared) => Self { shared: Arc::new(shared) },
            // Shared by requests that wait for one connection: it has its origin, and none was sent.
            Err(shared) => Self { shared },
        }
    }

    /// Returns the step that failed.
    pub fn phase(&self) -> Phase {
        self.shared.phase
    }

    /// Returns the origin that the request went to. After a redirect, that is not the one of the first request.
    pub fn origin(&self) -> Option<&Origin> {
        self.shared.origin.as_ref()
    }

    /// Returns true if the server may have processed the request, or is still doing so. If it is false, every request may
    /// be sent again.
    pub fn may_have_been_processed(&self) -> bool {
        self.shared.may_have_been_processed
    }

    /// Returns true if a time limit has passed, of the client or of the system.
    pub fn is_timeout(&self) -> bool {
        match &self.shared.cause {
            Cause::Time(..) => true,
            _ => self.io_kind() == Some(io::ErrorKind::TimedOut),
        }
    }

    /// Returns true if no connection could be opened: the name was not found, nobody has answered, the proxy or the
    /// TLS handshake has failed.
    pub fn is_connect(&self) -> bool {
        matches!(self.shared.phase, Phase::Connect | Phase::Proxy | Phase::Tls)
    }

    /// Returns true if the body of the response could not be read.
    pub fn is_body(&self) -> bool {
        self.shared.phase == Phase::Body
    }

    /// Returns true if a redirect could not be followed.
    pub fn is_redirect(&self) -> bool {
        self.shared.phase == Phase::Redirect
    }

    /// Returns true if the request itself was at fault, and can never be sent.
    pub fn is_request(&self) -> bool {
        self.shared.phase == Phase::Request
    }

    /// Returns true if the client was closed before the response was there.
    pub fn is_closed(&self) -> bool {
        matches!(self.shared.cause, Cause::Closed)
    }

    /// Returns the status that was taken for an error.
    pub fn status(&self) -> Option<StatusCode> {
        match self.shared.cause {
            Cause::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Returns the kind of the first error of I/O among the causes.
    fn io_kind(&self) -> Option<io::ErrorKind> {
        let mut next = self.source();
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return Some(error.kind());
            }
            next = error.source();
        }
        None
    }
}

impl From<ClientError> for io::Error {
    /// Wraps the error, with the kind of the error of I/O that has caused it, if one has.
    fn from(error: ClientError) -> Self {
        let kind = match &error.shared.cause {
            Cause::Time(..) => io::ErrorKind::TimedOut,
            Cause::Closed => io::ErrorKind::NotConnected,
            Cause::TooLarge(..) => io::ErrorKind::FileTooLarge,
            Cause::Said(_) if error.is_request() => io::ErrorKind::InvalidInput,
            _ => error.io_kind().unwrap_or(io::ErrorKind::Other),
        };
        Self::new(kind, error)
    }
}

impl Phase {
    fn says(self) -> &'static str {
        match self {
            Self::Request => "the request cannot be sent",
            Self::Wait => "there is no connection for the request",
            Self::Connect => "connecting failed",
            Self::Proxy => "the proxy does not help",
            Self::Tls => "the TLS handshake has failed",
            Self::Head => "there is no response",
            Self::Body => "the body of the response is incomplete",
            Self::Redirect => "the redirect cannot be followed",
            Self::Status => "the response is an error",
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.shared.origin {
            write!(f, "{origin}: ")?;
        }
        write!(f, "{}: ", self.shared.phase.says())?;
        match &self.shared.cause {
            Cause::Said(what) => f.write_str(what),
            Cause::Time(what, limit) => write!(f, "{what} took longer than {limit:?}"),
            Cause::Closed => f.write_str("the client was closed"),
            Cause::TooLarge(limit, _) => write!(f, "it is larger than {limit} bytes"),
            Cause::Status(status) => write!(f, "{status}"),
            Cause::Failed(error) => Chain(&**error).fmt(f),
        }
    }
}

impl fmt::Debug for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientError")
            .field("phase", &self.shared.phase)
            .field("cause", &self.shared.cause)
            .field("origin", &self.shared.origin)
            .field("may_have_been_processed", &self.shared.may_have_been_processed)
            .finish()
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.shared.cause {
            Cause::TooLarge(_, error) => Some(error),
            Cause::Failed(error) => Some(&**error),
            Cause::Said(_) | Cause::Time(..) | Cause::Closed | Cause::Status(_) => None,
        }
    }
}
