//! Failures of the protocol, as errors of I/O.

use core::fmt;
use std::io;

/// A failure of the TLS protocol: a certificate that is not trusted, a peer that does not speak TLS, a broken record.
///
/// It lies inside an [`io::Error`] of the kind [`InvalidData`](io::ErrorKind::InvalidData):
///
/// ```
/// use std::io;
/// use convoke_tls::TlsError;
///
/// fn is_untrusted(error: &io::Error) -> bool {
///     let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
///     tls.is_some_and(TlsError::is_about_certificate)
/// }
/// assert!(!is_untrusted(&io::ErrorKind::TimedOut.into()));
/// ```
#[derive(Clone, Debug)]
pub struct TlsError {
    error: rustls::Error,
}

impl TlsError {
    /// Returns true if the peer's certificate was refused, or the peer refused ours.
    pub fn is_about_certificate(&self) -> bool {
        use rustls::AlertDescription as Alert;
        match &self.error {
            rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => true,
            rustls::Error::AlertReceived(alert) => matches!(
                alert,
                Alert::BadCertificate
                    | Alert::UnsupportedCertificate
                    | Alert::CertificateRevoked
                    | Alert::CertificateExpired
                    | Alert::CertificateUnknown
                    | Alert::CertificateRequired
                    | Alert::UnknownCA
            ),
            _ => false,
        }
    }

    /// Returns the error of the engine.
    pub fn engine_error(&self) -> &rustls::Error {
        &self.error
    }
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self { error }
    }
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS failed: {}", self.error)
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The error of a stream that ends without close_notify: an attacker may have cut it.
pub(crate) fn truncated() -> io::Error {
    let message = "the connection ended without TLS close_notify: what was received may be incomplete";
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}

/// The error of writing to a stream whose write side was closed.
pub(crate) fn write_after_close() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the write side of the TLS stream was closed")
}

/// The error of a configuration or a name that cannot be used.
pub(crate) fn invalid(what: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.to_string())
}
