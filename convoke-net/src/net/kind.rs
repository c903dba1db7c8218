//! The two kinds of sockets as types, so that their common code is written once.

use core::fmt::Debug;
use core::net::SocketAddr;
use std::io;

use convoke_io::driver::Address;

/// A kind of socket: [`Internet`] or [`Unix`]. It determines the address type.
pub trait Kind: Debug + Send + Sync + Unpin + 'static {
    /// The address type of this kind.
    type Address: Debug + Send + 'static;

    /// Converts an address of any kind to this kind.
    #[doc(hidden)]
    fn address(any: Address) -> io::Result<Self::Address>;

    /// Converts an address of this kind to one of any kind.
    #[doc(hidden)]
    fn any(address: &Self::Address) -> Address;
}

/// Internet sockets.
#[derive(Debug)]
pub enum Internet {}

/// Unix sockets.
#[derive(Debug)]
pub enum Unix {}

impl Kind for Internet {
    type Address = SocketAddr;

    fn address(any: Address) -> io::Result<SocketAddr> {
        any.internet().ok_or_else(|| io::Error::other("the socket is not an Internet socket"))
    }

    fn any(address: &SocketAddr) -> Address {
        Address::Internet(*address)
    }
}

impl Kind for Unix {
    type Address = Address;

    fn address(any: Address) -> io::Result<Address> {
        Ok(any)
    }

    fn any(address: &Address) -> Address {
        address.clone()
    }
}

/// Returns the descriptor of a source, for `AsFd`.
#[cfg(unix)]
#[track_caller]
pub(super) fn descriptor(source: &dyn convoke_io::driver::Source) -> std::os::fd::BorrowedFd<'_> {
    source.descriptor().expect("the sockets of this driver have no descriptors: it does not use the system's")
}
