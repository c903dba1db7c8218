//! The failures that a server reports and survives.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use convoke_core::Panic;
use convoke_net::net::{Address, ServerReport};
use http::{Method, Uri};

pub(crate) type AnyError = Box<dyn Error + Send + Sync>;

/// A failure that does not end a [server](crate::Server), for its [report function](crate::Server::report). It prints as
/// one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Report {
    /// The service panicked. The request is answered with 500, if the client is still there.
    Panicked {
        /// The request.
        request: RequestLine,
        /// The panic.
        panic: Panic,
    },
    /// The service returned an error that is not about the body of the request. It is answered with 500.
    Failed {
        /// The request.
        request: RequestLine,
        /// The error.
        error: AnyError,
    },
    /// A request was not answered within the [request time](crate::Server::request_time). It was asked to stop, and is
    /// answered with 503.
    TooSlow {
        /// The request.
        request: RequestLine,
        /// The time that it had.
        limit: Duration,
    },
    /// The handler of an [upgraded](crate::upgrade()) connection failed or panicked.
    Upgraded {
        /// The address of the client.
        peer: Address,
        /// The failure.
        error: AnyError,
    },
    /// The body of a response failed or panicked while it was sent. The client sees that the response is incomplete.
    Response {
        /// The request.
        request: RequestLine,
        /// The failure.
        error: AnyError,
    },
    /// Requests had not ended at the end of the grace period. They were asked to stop.
    CutOff {
        /// The address of the client.
        peer: Address,
        /// The number of requests.
        requests: usize,
        /// The grace period.
        grace: Duration,
    },
    /// A client broke the protocol, was too slow, or went away in the middle of a message. Frequent on the open
    /// Internet: the default report function leaves it out.
    BadClient {
        /// The address of the client.
        peer: Address,
        /// The failure.
        error: AnyError,
    },
    /// A failure of a connection or of `accept`, as every server reports it.
    Connection(ServerReport),
}

impl Report {
    /// Returns true if the client is at fault, and not the server.
    pub fn is_about_client(&self) -> bool {
        matches!(self, Self::BadClient { .. })
    }

    /// Prints the report to stderr, unless it is about the client.
    pub(crate) fn print(self) {
        if !self.is_about_client() {
            eprintln!("{self}");
        }
    }
}

/// A request, as reports name it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestLine {
    /// The address of the client.
    pub peer: Address,
    /// The method.
    pub method: Method,
    /// The target. It may contain what the client wants to be kept secret.
    pub uri: Uri,
}

impl fmt::Display for RequestLine {
    /// Prints the request without its query, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} from {}", self.method, self.uri.path(), self.peer)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked { request, panic } => write!(f, "{request}: {panic}"),
            Self::Failed { request, error } => write!(f, "{request}: {}", Chain(&**error)),
            Self::TooSlow { request, limit } => {
                write!(f, "{request}: stopped, since it had not been answered after {limit:?}")
            }
            Self::Upgraded { peer, error } => {
                write!(f, "upgraded connection from {peer}: {}", Chain(&**error))
            }
            Self::Response { request, error } => {
                write!(f, "{request}: the response is incomplete: {}", Chain(&**error))
            }
            Self::CutOff { peer, requests, grace } => write!(
                f,
                "connection from {peer}: {requests} requests had not ended {grace:?} after the stop request, and were \
                 asked to stop"
            ),
            Self::BadClient { peer, error } => write!(f, "client {peer}: {}", Chain(&**error)),
            Self::Connection(report) => report.fmt(f),
        }
    }
}

/// An error with its sources, on one line: hyper's errors say what was done, and their sources what went wrong.
pub(crate) struct Chain<'a>(pub(crate) &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        let mut next = self.0.source();
        while let Some(error) = next {
            let more = error.to_string();
            // Some errors print their source themselves.
            if !said.ends_with(&more) {
                write!(f, ": {more}")?;
            }
            said = more;
            next = error.source();
        }
        Ok(())
    }
}
