//! Routes: an origin, and the way to it. Connections with the same route can serve each other's requests.

use core::fmt;
use std::sync::Arc;

use super::origin::Origin;
use super::proxy::ProxyServer;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Route {
    /// The host to speak HTTP with: the origin of the request, or the proxy that forwards it.
    pub(super) origin: Origin,
    /// The proxy that opens a tunnel to the origin.
    pub(super) tunnel: Option<Arc<ProxyServer>>,
    /// The proxy that forwards requests. `origin` is its own then.
    pub(super) forwarder: Option<Arc<ProxyServer>>,
    pub(super) versions: Versions,
}

/// The versions of HTTP that may be spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Versions {
    Http1,
    Http2,
    /// The one that both sides agree on by TLS. HTTP/1.1 without TLS.
    Agreed,
}

impl Route {
    /// Returns true if connections may turn out to be of HTTP/2, so that one serves many requests.
    pub(super) fn may_multiplex(&self) -> bool {
        match self.versions {
            Versions::Http1 => false,
            Versions::Http2 => true,
            Versions::Agreed => self.origin.is_encrypted(),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if let Some(proxy) = &self.tunnel {
            write!(f, " through {}", proxy.origin)?;
        }
        Ok(())
    }
}
