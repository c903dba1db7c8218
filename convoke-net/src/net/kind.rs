//! The two kinds of sockets, as types: what they have in common is written once.

use core::fmt::Debug;
use core::net::SocketAddr;
use std::io;

use convoke_io::driver::Address;

/// A kind of socket: [`Internet`] or [`Unix`]. It says what an address is.
pub trait Kind: Debug + Send + Sync + Unpin + 'static {
    /// What an address of this kind looks like.
    type Address: Debug + Send + 'static;

    /// Takes an address of this kind out of any.
    #[doc(hidden)]
    fn address(any: Address) -> io::Result<Self::Address>;
}

/// Internet sockets.
#[derive(Debug)]
pub enum Internet {}

/// Sockets in the file system.
#[derive(Debug)]
pub enum Unix {}

impl Kind for Internet {
    type Address = SocketAddr;

    fn address(any: Address) -> io::Result<SocketAddr> {
        any.internet().ok_or_else(|| io::Error::other("the socket is not an Internet socket"))
    }
}

impl Kind for Unix {
    type Address = Address;

    fn address(any: Address) -> io::Result<Address> {
        Ok(any)
    }
}

/// The descriptor of a source, for `AsFd`.
#[cfg(unix)]
#[track_caller]
pub(super) fn descriptor(source: &dyn convoke_io::driver::Source) -> std::os::fd::BorrowedFd<'_> {
    source.descriptor().expect("a socket of this driver has no descriptor: it is not the system's")
}
