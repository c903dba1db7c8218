//! Certificates of an authority that lives as long as a test.

use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_tls::{Identity, Roots};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// An authority, and what it has signed.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, in PEM.
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // The names of two authorities differ, as in life.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn roots(&self) -> Roots {
        let mut roots = Roots::new();
        roots.add_pem(self.pem().as_bytes()).unwrap();
        roots
    }

    pub(crate) fn sign(&self, name: &str) -> Signed {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap().pem();
        Signed { certificate, key: key.serialize_pem() }
    }

    pub(crate) fn identity(&self, name: &str) -> Identity {
        self.sign(name).identity()
    }
}

impl Signed {
    pub(crate) fn identity(&self) -> Identity {
        Identity::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).unwrap()
    }
}
