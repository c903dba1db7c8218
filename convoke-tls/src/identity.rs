//! A certificate with its key.

use core::fmt;
use std::io;
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::invalid;

/// A certificate with the chain up to its authority, and its private key. Servers need one; clients only if the server asks
/// for it (mutual TLS).
///
/// ```no_run
/// use convoke_tls::Identity;
///
/// let identity = Identity::from_pem_files("server.crt", "server.key")?;
/// # std::io::Result::Ok(())
/// ```
pub struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads certificates and a key in PEM, the server's own certificate first.
    ///
    /// # Errors
    /// Fails if there is no certificate or no key, or if one is malformed.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> io::Result<Self> {
        let chain = certificates_of(certificates)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| invalid(format_args!("no private key can be read: {error}")))?;
        Ok(Self { chain, key })
    }

    /// Reads files in PEM. It blocks: call it before the server starts, or in `convoke::blocking`.
    ///
    /// # Errors
    /// Fails if a file cannot be read, and as [`from_pem`](Self::from_pem) does.
    pub fn from_pem_files(certificates: impl AsRef<Path>, key: impl AsRef<Path>) -> io::Result<Self> {
        Self::from_pem(&read(certificates.as_ref())?, &read(key.as_ref())?)
    }

    /// Takes certificates and a key in DER.
    ///
    /// # Errors
    /// Fails if there is no certificate, or if the key is of no known format.
    pub fn from_der(certificates: Vec<Vec<u8>>, key: Vec<u8>) -> io::Result<Self> {
        if certificates.is_empty() {
            return Err(invalid("an identity needs at least one certificate"));
        }
        let key = PrivateKeyDer::try_from(key)
            .map_err(|error| invalid(format_args!("no private key can be read: {error}")))?;
        Ok(Self { chain: certificates.into_iter().map(CertificateDer::from).collect(), key })
    }
}

/// Returns the certificates of a text in PEM, at least one.
pub(crate) fn certificates_of(pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err(invalid("no certificate was found: PEM begins with -----BEGIN CERTIFICATE-----"))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(invalid(format_args!("no certificate can be read: {error}"))),
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

impl fmt::Debug for Identity {
    /// Shows no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}
