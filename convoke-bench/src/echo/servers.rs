//! The echo servers, one file per peer. Each gets a bound non-blocking socket and the buffer size of a
//! connection, and serves until the process ends.
//!
//! Each is written in the way that suits its runtime best, on one thread: a task per connection reads up to
//! the size of its buffer, which comes from the allocator, and writes all of that back. A connection that
//! fails is closed; the server continues.

mod compio;
mod convoke;
mod http;
mod monoio;
mod on_cores;
mod raw_epoll;
mod smol;
mod tokio;

use std::net::{TcpListener, UdpSocket};

pub(super) use http::HttpServer;
pub(super) use on_cores::CoresServer;

#[derive(Clone, Copy)]
pub(super) struct Server {
    pub(super) peer: &'static str,
    pub(super) tcp: fn(TcpListener, usize),
    pub(super) udp: fn(UdpSocket, usize),
}

pub(super) fn all() -> impl Iterator<Item = Server> {
    [convoke::SERVER, tokio::SERVER, smol::SERVER, monoio::SERVER, compio::SERVER, raw_epoll::SERVER]
        .into_iter()
}

/// Returns the servers that compute, on one core and on two.
pub(super) fn on_cores() -> impl Iterator<Item = CoresServer> {
    on_cores::SERVERS.into_iter()
}

/// Returns the names of the servers that compute.
pub(crate) fn peers_on_cores() -> impl Iterator<Item = &'static str> {
    on_cores().map(|server| server.peer)
}

/// Returns the names of all servers, in the order of the report.
pub(crate) fn peers() -> impl Iterator<Item = &'static str> {
    all().map(|server| server.peer)
}

/// Returns the HTTP servers on one core.
pub(super) fn http() -> impl Iterator<Item = HttpServer> {
    http::SERVERS.into_iter()
}

/// Returns the HTTP servers that compute, on one core and on two.
pub(super) fn http_on_cores() -> impl Iterator<Item = CoresServer> {
    http::ON_CORES.into_iter()
}

/// Returns the names of the HTTP servers, in the order of the report.
pub(crate) fn http_peers() -> impl Iterator<Item = &'static str> {
    http().map(|server| server.peer)
}

/// Returns the names of the HTTP servers that compute.
pub(crate) fn http_peers_on_cores() -> impl Iterator<Item = &'static str> {
    http_on_cores().map(|server| server.peer)
}
