//! The failures that a server reports and survives.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::io;

use convoke_core::Panic;
use convoke_io::driver::Address;

pub(super) type AnyError = Box<dyn Error + Send + Sync>;

/// The output of the handler of a connection: `()`, or a `Result<(), E>` with any error or text.
#[diagnostic::on_unimplemented(
    message = "the handler of a connection cannot return `{Self}`",
    note = "it returns `()` or a `Result<(), E>`, where `E` is an error"
)]
pub trait ConnectionOutput {
    /// Returns the error, if the handler failed.
    fn error(self) -> Option<AnyError>;
}

impl ConnectionOutput for () {
    fn error(self) -> Option<AnyError> {
        None
    }
}

impl<E: Into<AnyError>> ConnectionOutput for Result<(), E> {
    fn error(self) -> Option<AnyError> {
        self.err().map(Into::into)
    }
}

/// A failure that does not end a [server](super::serve()), for its [report function](super::Server::report). It
/// prints as one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerReport {
    /// The handler of a connection returned an error.
    Failed {
        /// The address of the peer.
        peer: Address,
        /// The error of the handler.
        error: AnyError,
    },
    /// The handler of a connection panicked.
    Panicked {
        /// The address of the peer.
        peer: Address,
        /// The panic of the handler.
        panic: Panic,
    },
    /// A connection had not ended at the end of the grace period. Its socket was shut down.
    CutOff {
        /// The address of the peer.
        peer: Address,
        /// The grace period.
        grace: Duration,
    },
    /// The system has no descriptors or memory for another connection. Reported once, until a connection can be
    /// accepted again.
    NoResources {
        /// The error of the system.
        error: io::Error,
        /// The time until the next attempt.
        pause: Duration,
    },
}

impl fmt::Display for ServerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { peer, error } => write!(f, "connection from {peer}: {error}"),
            Self::Panicked { peer, panic } => write!(f, "connection from {peer}: {panic}"),
            Self::CutOff { peer, grace } => write!(
                f,
                "connection from {peer}: shut down by the server, since it had not ended {grace:?} after the stop request"
            ),
            Self::NoResources { error, pause } => write!(
                f,
                "no connection can be accepted now ({error}); trying again every {pause:?}, as soon as others end"
            ),
        }
    }
}
