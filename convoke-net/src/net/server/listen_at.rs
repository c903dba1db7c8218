//! Where a server listens: at an address that it binds, or with a listener that exists.

use core::fmt;
use core::net::SocketAddr;
use std::io;
use std::sync::Arc;

use convoke_io::context::current_driver;
use convoke_io::driver::{Driver, ListenOptions};

use crate::net::kind::{Internet, Kind};
use crate::net::listener::Listener;
use crate::net::tcp::bind_first;
use crate::net::to_address::{AddressQuery, ToAddress};

/// True if a server at an address hands its connections to other contexts by default: only Linux spreads them over
/// several listeners.
pub(super) const HANDS_OVER: bool = !cfg!(target_os = "linux");

/// A value that a server can listen at: an address, or a [`Listener`] of any kind.
#[diagnostic::on_unimplemented(
    message = "a server cannot listen at `{Self}`",
    note = "give it an address such as \"127.0.0.1:80\", a `TcpListener` or a `UnixListener`"
)]
pub trait ListenAt {
    /// The kind of its connections.
    type Kind: Kind;

    /// True if connections are handed to other contexts, unless the server is told otherwise.
    #[doc(hidden)]
    const HANDS_OVER: bool;

    #[doc(hidden)]
    fn into_place(self) -> ListenPlace<Self::Kind>;
}

impl<A: ToAddress> ListenAt for A {
    type Kind = Internet;
    const HANDS_OVER: bool = HANDS_OVER;

    fn into_place(self) -> ListenPlace<Internet> {
        ListenPlace::Query(self.to_address())
    }
}

impl<K: Kind> ListenAt for Listener<K> {
    type Kind = K;
    const HANDS_OVER: bool = true;

    fn into_place(self) -> ListenPlace<K> {
        ListenPlace::Listener(self)
    }
}

/// Where a server listens, without the type of the value that said so.
#[doc(hidden)]
pub enum ListenPlace<K> {
    /// At an Internet address that is to be bound.
    Query(AddressQuery),
    /// With this listener.
    Listener(Listener<K>),
}

impl<K> fmt::Debug for ListenPlace<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(query) => query.fmt(f),
            Self::Listener(listener) => listener.fmt(f),
        }
    }
}

/// Binds a listener of this driver to the first of these addresses that can be used.
pub(super) fn bind<K: Kind>(
    driver: &Arc<dyn Driver>,
    addresses: Vec<SocketAddr>,
    options: &ListenOptions,
) -> io::Result<Listener<K>> {
    bind_first(addresses, |address| driver.listen(address, options)).map(Listener::new)
}

/// Fails if another process listens at all of these addresses. Listeners with SO_REUSEPORT do not find that out
/// by themselves: they would share the address with an old instance of the server, and get half of its clients.
pub(super) fn check_unused(addresses: &[SocketAddr], options: &ListenOptions) -> io::Result<()> {
    let driver = current_driver()?;
    bind_first(addresses.to_vec(), |address| driver.listen(address, options)).map(drop)
}
