//! A request, as an access log records it.

use core::fmt;
use core::time::Duration;

use convoke_net::net::Address;
use http::{Method, StatusCode, Uri, Version};

/// A request that has ended, for an access log: see [`Server::on_request`](crate::Server::on_request). It prints as one
/// line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestRecord {
    /// The address of the client.
    pub peer: Address,
    /// The method.
    pub method: Method,
    /// The target.
    pub uri: Uri,
    /// The version of HTTP.
    pub version: Version,
    /// The status of the response. `None` if there was none: the client has gone, or the server has ended.
    pub status: Option<StatusCode>,
    /// The number of bytes of the response's body that were given to the connection.
    pub response_bytes: u64,
    /// The time from the end of the request's head until the whole response was given to the connection, by the clock of
    /// the task.
    pub took: Duration,
}

impl fmt::Display for RequestRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, method, uri, version, status, response_bytes, took } = self;
        write!(f, "{peer} \"{method} {uri} {version:?}\" ")?;
        match status {
            Some(status) => write!(f, "{}", status.as_u16())?,
            None => f.write_str("-")?,
        }
        write!(f, " {response_bytes} {took:?}")
    }
}
