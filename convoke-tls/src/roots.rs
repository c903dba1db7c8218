//! The authorities to trust.

use core::fmt;
use std::io;

use rustls::RootCertStore;

use crate::error::invalid;
use crate::identity::certificates_of;

/// The certificate authorities that certificates of peers must come from.
///
/// ```no_run
/// use convoke_tls::Roots;
///
/// let mut roots = Roots::new();
/// roots.add_pem(&std::fs::read("company-ca.pem")?)?;
/// # std::io::Result::Ok(())
/// ```
///
/// For servers on the Internet, take `Roots::system()`, with the feature `system-roots` (`tls-system-roots` of `convoke`,
/// `convoke-http` and `convoke-postgres`).
#[derive(Clone)]
pub struct Roots {
    pub(crate) store: RootCertStore,
}

impl Roots {
    /// Creates an empty set: it trusts no certificate.
    pub fn new() -> Self {
        Self { store: RootCertStore::empty() }
    }

    /// Returns the authorities that the operating system trusts, or those in the file that the variable `SSL_CERT_FILE` names.
    /// It reads files: call it once.
    ///
    /// # Errors
    /// Fails if the system has no certificates, or none can be read.
    ///
    /// ```no_run
    /// use convoke_tls::{Roots, TlsConnector};
    ///
    /// let connector = TlsConnector::new(Roots::system()?)?;
    /// # drop(connector);
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(feature = "system-roots")]
    #[cfg_attr(docsrs, doc(cfg(feature = "system-roots")))]
    pub fn system() -> io::Result<Self> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = Self::new();
        let (added, _) = roots.store.add_parsable_certificates(found.certs);
        match (added, found.errors.first()) {
            (0, Some(error)) => Err(io::Error::other(format!("no system certificate can be read: {error}"))),
            (0, None) => Err(io::Error::new(io::ErrorKind::NotFound, "the system has no certificates")),
            _ => Ok(roots),
        }
    }

    /// Adds authorities in PEM.
    ///
    /// # Errors
    /// Fails if there is no certificate, or if one is malformed.
    pub fn add_pem(&mut self, pem: &[u8]) -> io::Result<()> {
        for certificate in certificates_of(pem)? {
            self.store
                .add(certificate)
                .map_err(|error| invalid(format_args!("a certificate cannot be trusted: {error}")))?;
        }
        Ok(())
    }
}

impl Default for Roots {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roots").field("authorities", &self.store.len()).finish()
    }
}
