//! `ToAddress`: types that can be used as an address, and the lookup of names among them.

use core::future::Future;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::io;

use convoke_core::raw::Pause;

use super::resolver::{LookUp, has_no_address, look_up, look_up_unshared};

/// A value that can be used as an Internet address: a `SocketAddr`, `"127.0.0.1:80"`, `("example.org", 443)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as an address",
    note = "addresses are `SocketAddr`, `(ip, port)`, \"127.0.0.1:80\", \"host:80\" or `(\"host\", 80)`"
)]
pub trait ToAddress {
    /// Converts it to addresses, or to a name that is to be looked up.
    fn to_address(self) -> AddressQuery;
}

/// An address, or a name that must be looked up to get one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressQuery {
    /// These addresses, in this order.
    Known(Vec<SocketAddr>),
    /// The addresses of this host, with this port.
    Name(String, u16),
    /// Neither an address nor a name: the text that was given.
    Malformed(String),
}

/// Resolves an address. Names are looked up by the driver if it has hosts of its own, otherwise by the
/// context's [`Resolver`](super::resolver::Resolver), which asks the system or the names that were installed
/// there.
///
/// - *Completes with* at least one address; an error, which is a
///   [`LookupError`](super::resolver::LookupError) if the host was not found; or stopped.
/// - *If dropped*, it stops waiting. A lookup without waiters is stopped.
/// - *Runs on* the current task; the lookup runs on its context.
///
/// ```
/// use convoke::net::resolve;
///
/// let context = convoke::driver::io_context().unwrap();
/// let found = context.block_on(async { resolve("localhost:80").await });
/// assert!(found.unwrap().unwrap().iter().all(|address| address.port() == 80));
/// ```
#[track_caller]
pub fn resolve(address: impl ToAddress) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send {
    resolve_by(address.to_address(), look_up_boxed)
}

/// Resolves the address that a listener is bound to. The lookup is not shared with others, nor limited: it runs once,
/// and a server that connects nowhere does without the service for that.
pub(super) fn resolve_own(
    address: impl ToAddress,
) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send {
    resolve_by(address.to_address(), |host| Box::pin(look_up_unshared(host)))
}

async fn resolve_by(
    query: AddressQuery,
    look_up: for<'a> fn(&'a str) -> LookUp<'a>,
) -> io::Result<Vec<SocketAddr>> {
    let (host, port) = match query {
        AddressQuery::Known(addresses) if addresses.is_empty() => return Err(none_given()),
        AddressQuery::Known(addresses) => {
            Pause::stop_here().await;
            return Ok(addresses);
        }
        AddressQuery::Name(host, port) => (host, port),
        AddressQuery::Malformed(text) => return Err(malformed(&text)),
    };
    let mut found = look_up(&host).await?;
    found.iter_mut().for_each(|address| address.set_port(port));
    if found.is_empty() { Err(has_no_address(&host)) } else { Ok(found) }
}

/// Looks up a host. Boxed, so that the code of the resolver is compiled here, and not in each crate that uses an address.
fn look_up_boxed(host: &str) -> LookUp<'_> {
    Box::pin(look_up(host))
}

#[cold]
fn none_given() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "no address was given: the list is empty")
}

#[cold]
fn malformed(text: &str) -> io::Error {
    let message = format!(
        "`{text}` is not an address: write \"127.0.0.1:80\", \"[::1]:80\" or \"host:80\", with a port from 0 to 65535"
    );
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

impl ToAddress for AddressQuery {
    fn to_address(self) -> AddressQuery {
        self
    }
}

impl ToAddress for SocketAddr {
    fn to_address(self) -> AddressQuery {
        AddressQuery::Known(vec![self])
    }
}

impl ToAddress for SocketAddrV4 {
    fn to_address(self) -> AddressQuery {
        SocketAddr::from(self).to_address()
    }
}

impl ToAddress for SocketAddrV6 {
    fn to_address(self) -> AddressQuery {
        SocketAddr::from(self).to_address()
    }
}

impl ToAddress for (IpAddr, u16) {
    fn to_address(self) -> AddressQuery {
        SocketAddr::from(self).to_address()
    }
}

impl ToAddress for (Ipv4Addr, u16) {
    fn to_address(self) -> AddressQuery {
        SocketAddr::from(self).to_address()
    }
}

impl ToAddress for (Ipv6Addr, u16) {
    fn to_address(self) -> AddressQuery {
        SocketAddr::from(self).to_address()
    }
}

impl ToAddress for &[SocketAddr] {
    fn to_address(self) -> AddressQuery {
        AddressQuery::Known(self.to_vec())
    }
}

impl ToAddress for (&str, u16) {
    fn to_address(self) -> AddressQuery {
        match self.0.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, self.1).to_address(),
            Err(_) => AddressQuery::Name(self.0.to_owned(), self.1),
        }
    }
}

impl ToAddress for &str {
    fn to_address(self) -> AddressQuery {
        if let Ok(address) = self.parse::<SocketAddr>() {
            return address.to_address();
        }
        match self.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
            // Bytes: `contains` of a `str` brings the search for any string along, 2000 lines of LLVM IR.
            Some((host, Ok(port))) if !host.is_empty() && !host.as_bytes().contains(&b':') => {
                (host, port).to_address()
            }
            _ => AddressQuery::Malformed(self.to_owned()),
        }
    }
}

impl ToAddress for String {
    fn to_address(self) -> AddressQuery {
        self.as_str().to_address()
    }
}

impl ToAddress for &String {
    fn to_address(self) -> AddressQuery {
        self.as_str().to_address()
    }
}
