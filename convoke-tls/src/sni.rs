//! The name that a client asks for. rustls tells it to the resolver of certificates only, if it has no buffers of its own: so each
//! handshake gets a resolver that remembers it.

use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::Mutex;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Asks another resolver, and remembers the name.
#[derive(Debug)]
struct Remembering {
    resolver: Arc<dyn ResolvesServerCert>,
    name: Arc<AskedName>,
}

/// The name of the server that a client has asked for.
#[derive(Debug, Default)]
pub(crate) struct AskedName(Mutex<Option<Box<str>>>);

impl AskedName {
    /// Takes the name, after the handshake.
    pub(crate) fn take(&self) -> Option<Box<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Returns the configuration of one handshake, and where the name will be. All that is shared by handshakes stays shared.
pub(crate) fn remember_name(config: &ServerConfig) -> (Arc<ServerConfig>, Arc<AskedName>) {
    let name = Arc::<AskedName>::default();
    let mut config = config.clone();
    config.cert_resolver = Arc::new(Remembering { resolver: config.cert_resolver, name: name.clone() });
    (Arc::new(config), name)
}

impl ResolvesServerCert for Remembering {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(Box::from);
        *self.name.0.lock().unwrap_or_else(PoisonError::into_inner) = name;
        self.resolver.resolve(hello)
    }

    fn only_raw_public_keys(&self) -> bool {
        self.resolver.only_raw_public_keys()
    }
}
