//! Proxies: which requests go through one, and how.

use core::fmt;
use std::io;
use std::sync::Arc;

use http::{HeaderValue, Uri};

use super::basic::basic_of;
use super::origin::Origin;

/// The proxies of a client. Requests for `http` are forwarded by them; for `https` they open a tunnel (`CONNECT`), and see
/// only its ends.
///
/// A proxy is given by its URI, `http://name:password@host:port`. The connection to the proxy itself is not encrypted.
///
/// ```
/// use convoke_http::client::Proxy;
///
/// let proxy = Proxy::all("http://proxy.example:3128")?;
/// let proxy = proxy.no_proxy("localhost, .internal, 10.1.2.3");
/// # drop(proxy);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Default)]
pub struct Proxy {
    http: Option<Arc<ProxyServer>>,
    https: Option<Arc<ProxyServer>>,
    exceptions: Vec<Exception>,
}

/// A proxy.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProxyServer {
    pub(super) origin: Origin,
    pub(super) authorization: Option<HeaderValue>,
}

/// Hosts that are asked directly.
#[derive(Clone, Debug)]
enum Exception {
    All,
    /// The host itself and those below it, at this port or any.
    Host(Box<str>, Option<u16>),
}

impl Proxy {
    /// Sends requests for both schemes through a proxy.
    ///
    /// # Errors
    /// Fails if the URI is malformed, or its scheme is not `http`.
    pub fn all(uri: &str) -> io::Result<Self> {
        let server = ProxyServer::parse(uri)?;
        Ok(Self { http: Some(server.clone()), https: Some(server), exceptions: Vec::new() })
    }

    /// Reads the proxies from the variables of the environment: `http_proxy`, `https_proxy` and `all_proxy` for the URIs, and
    /// `no_proxy` for the exceptions. All but `http_proxy` may be in capitals: a web server sets `HTTP_PROXY` to what a client
    /// sends.
    ///
    /// # Errors
    /// Fails if one of them is malformed.
    pub fn from_env() -> io::Result<Self> {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// Reads the proxies from variables, as [`from_env`](Self::from_env) does, from another source.
    ///
    /// # Errors
    /// Fails if one of them is malformed.
    pub fn from_vars(variable: impl Fn(&str) -> Option<String>) -> io::Result<Self> {
        let lookup =
            |names: &[&str]| names.iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
        let server = |names: &[&str]| lookup(names).map(|uri| ProxyServer::parse(&uri)).transpose();
        let all = server(&["all_proxy", "ALL_PROXY"])?;
        let proxy = Self {
            http: server(&["http_proxy"])?.or_else(|| all.clone()),
            https: server(&["https_proxy", "HTTPS_PROXY"])?.or(all),
            exceptions: Vec::new(),
        };
        Ok(proxy.no_proxy(&lookup(&["no_proxy", "NO_PROXY"]).unwrap_or_default()))
    }

    /// Adds hosts that are asked directly: names, with all hosts below them, and addresses, separated by commas; each may have
    /// a port. `*` means all hosts.
    #[must_use]
    pub fn no_proxy(mut self, hosts: &str) -> Self {
        let hosts = hosts.split(',').map(str::trim).filter(|host| !host.is_empty());
        self.exceptions.extend(hosts.map(Exception::parse));
        self
    }

    /// Returns the proxy for an origin.
    pub(super) fn of(&self, origin: &Origin) -> Option<&Arc<ProxyServer>> {
        let server = if origin.is_encrypted() { self.https.as_ref() } else { self.http.as_ref() };
        server.filter(|_| !self.exceptions.iter().any(|exception| exception.matches(origin)))
    }
}

impl ProxyServer {
    fn parse(text: &str) -> io::Result<Arc<Self>> {
        let invalid = |why: &str| {
            // Not the URI itself: it may contain a password.
            io::Error::new(io::ErrorKind::InvalidInput, format!("the URI of the proxy cannot be used: {why}"))
        };
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri =
            with_scheme.parse().map_err(|error: http::uri::InvalidUri| invalid(&error.to_string()))?;
        let origin = Origin::of(&uri).map_err(invalid)?;
        if origin.is_encrypted() {
            return Err(invalid("its scheme is `https`: write `http`"));
        }
        let authorization = uri.authority().and_then(|authority| basic_of(authority.as_str()));
        Ok(Arc::new(Self { origin, authorization }))
    }
}

impl Exception {
    fn parse(text: &str) -> Self {
        if text == "*" {
            return Self::All;
        }
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an address of IPv6 are not before a port, unless it is in brackets.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
                Ok(port) => (host, Some(port)),
                Err(_) => (text, None),
            },
            _ => (text, None),
        };
        let host = host.trim_start_matches("*.").trim_start_matches('.');
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Self::Host(host.to_ascii_lowercase().into(), port)
    }

    fn matches(&self, origin: &Origin) -> bool {
        let Self::Host(host, port) = self else { return true };
        let asked = origin.bare_host();
        let is_below = || asked.strip_suffix(&**host).is_some_and(|rest| rest.ends_with('.'));
        port.is_none_or(|port| port == origin.port()) && (asked == &**host || is_below())
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin =
            |server: &Option<Arc<ProxyServer>>| server.as_ref().map(|server| server.origin.to_string());
        f.debug_struct("Proxy")
            .field("http", &origin(&self.http))
            .field("https", &origin(&self.https))
            .field("exceptions", &self.exceptions)
            .finish()
    }
}
