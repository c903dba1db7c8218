//! Origins: where requests go, and what connections are pooled by.

use core::fmt;

use http::Uri;
use http::uri::Authority;

/// A scheme, a host and a port: `http://server:8080`. It prints so, without the port if that is the default one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    is_encrypted: bool,
    /// In lower case. An address of IPv6 has its brackets.
    host: Box<str>,
    port: u16,
}

impl Origin {
    /// Returns the origin of a URI, or why it has none.
    pub(super) fn of(uri: &Uri) -> Result<Self, &'static str> {
        let is_encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err("the scheme is neither `http` nor `https`"),
            None => return Err("the URI has no scheme: write `http://host/path`"),
        };
        let authority = uri.authority().ok_or("the URI has no host")?;
        Self::new(is_encrypted, authority)
    }

    pub(super) fn new(is_encrypted: bool, authority: &Authority) -> Result<Self, &'static str> {
        let host = authority.host();
        if host.is_empty() {
            return Err("the URI has no host");
        }
        let after_host = authority.as_str().rsplit('@').next().and_then(|rest| rest.strip_prefix(host));
        let port = match after_host.and_then(|rest| rest.strip_prefix(':')) {
            None | Some("") => default_port(is_encrypted),
            Some(port) => port.parse().map_err(|_| "the port of the URI is not a number up to 65535")?,
        };
        Ok(Self { is_encrypted, host: host.to_ascii_lowercase().into(), port })
    }

    /// Returns true for `https`.
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Returns the host: a name in lower case or an address; one of IPv6 in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the host without the brackets of an IPv6 address.
    pub(super) fn bare_host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// Returns the host and the port, without the port if that is the default one: the value of `Host`.
    pub(super) fn authority(&self) -> String {
        if self.port == default_port(self.is_encrypted) {
            self.host.to_string()
        } else {
            self.host_and_port()
        }
    }

    /// Returns the host and the port.
    pub(super) fn host_and_port(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

fn default_port(is_encrypted: bool) -> u16 {
    if is_encrypted { 443 } else { 80 }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}
