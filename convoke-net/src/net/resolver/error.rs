//! `LookupError`: an error that names the host. All waiters of a lookup get the same one.

use core::fmt;
use std::io;
use std::sync::Arc;

/// The host that was not found, and the reason. It is the inner error of the `io::Error` that a lookup
/// returns, and has the kind of its [cause](LookupError::cause). All waiters of a lookup get the same error.
///
/// An `io::Error` has either the number of a system error or an inner error. This one names the host in its
/// message; the number, if there is one, is in the cause.
///
/// ```
/// use convoke::net::resolve;
/// use convoke::net::resolver::{HostTable, LookupError, install};
///
/// let context = convoke::driver::io_context().unwrap();
/// install(context.services(), HostTable::new()).unwrap();
/// let error = context.block_on(resolve("database:5432")).unwrap().unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
/// assert!(error.to_string().starts_with("cannot look up `database`: "));
/// let inside = error.get_ref().unwrap().downcast_ref::<LookupError>().unwrap();
/// assert_eq!((inside.host(), inside.cause().raw_os_error()), ("database", None));
/// ```
#[derive(Clone, Debug)]
pub struct LookupError {
    host: Arc<str>,
    cause: Arc<io::Error>,
}

impl LookupError {
    pub(super) fn new(host: Arc<str>, cause: Arc<io::Error>) -> Self {
        Self { host, cause }
    }

    /// Returns the host that was looked up.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the error of the system, or of the installed [names](super::Names).
    pub fn cause(&self) -> &io::Error {
        &self.cause
    }
}

/// Adds the host's name to an error, unless it is a `LookupError` already.
#[cold]
pub(super) fn with_host(host: &str, cause: io::Error) -> io::Error {
    match cause.get_ref() {
        Some(inside) if inside.is::<LookupError>() => cause,
        _ => LookupError::new(host.into(), Arc::new(cause)).into(),
    }
}

/// Creates the error for a host that is known but has no address.
#[cold]
pub(in super::super) fn has_no_address(host: &str) -> io::Error {
    with_host(host, io::Error::new(io::ErrorKind::NotFound, "it has no address"))
}

impl From<LookupError> for io::Error {
    fn from(error: LookupError) -> Self {
        Self::new(error.cause.kind(), error)
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot look up `{}`: {}", self.host, self.cause)
    }
}

impl core::error::Error for LookupError {
    /// Returns the source of the cause. The cause itself is part of the message.
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.cause.source()
    }
}
