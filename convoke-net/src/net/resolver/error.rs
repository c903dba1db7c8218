//! The error of a lookup: names the host, and is told to all who have asked for it.

use core::fmt;
use std::io;
use std::sync::Arc;

/// Why a host was not found: what is inside of the `io::Error` that a lookup ends with, of the same kind as its
/// [cause](LookupError::cause). All who waited for the same lookup are told the same.
///
/// An `io::Error` says either what the system said, by its number, or something in words. This one names the host, in words; the
/// number, if there was one, is that of the cause.
///
/// ```
/// use convoke::net::resolve;
/// use convoke::net::resolver::{HostTable, LookupError, install};
///
/// let context = convoke::driver::io_context().unwrap();
/// install(context.services(), HostTable::new()).unwrap();
/// let error = context.run_until(resolve("database:5432")).unwrap().unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
/// assert!(error.to_string().starts_with("cannot look up `database`: "));
/// let inside = error.get_ref().and_then(|inside| inside.downcast_ref::<LookupError>()).unwrap();
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

    /// The host that was looked up.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What the system, or the [names](super::Names) that were asked, said.
    pub fn cause(&self) -> &io::Error {
        &self.cause
    }
}

/// The same error with the host's name, unless it is named already.
#[cold]
pub(super) fn naming(host: &str, cause: io::Error) -> io::Error {
    match cause.get_ref() {
        Some(inside) if inside.is::<LookupError>() => cause,
        _ => LookupError::new(host.into(), Arc::new(cause)).into(),
    }
}

/// The error of a host that is known, and has no address.
#[cold]
pub(in super::super) fn has_no_address(host: &str) -> io::Error {
    naming(host, io::Error::new(io::ErrorKind::NotFound, "it has no address"))
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
    /// That of the cause, which is in the message already.
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.cause.source()
    }
}
