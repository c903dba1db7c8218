//! The error of an address that could not be used: says which one, and what for. "Address already in use" alone has sent many a
//! person looking for the port.

use core::fmt;
use std::io;

use convoke_io::driver::Address;

/// Where a socket was to be, or whom it was to be connected to, and why it is not: what is inside of the `io::Error` that a `bind` or
/// a `connect` ends with, of the same kind as its [cause](AddressError::cause).
///
/// An `io::Error` says either what the system said, by its number, or something in words. This one names the address, in words; the
/// number is that of the cause. Where the kind of an error says less than its number, as that of too many descriptors does, or
/// somebody else has found words for it, it is left as it was.
///
/// ```
/// use convoke::net::{AddressError, TcpListener};
///
/// let context = convoke::driver::io_context().unwrap();
/// let error = context.run_until(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     TcpListener::bind(listener.local_addr()?).await.map(drop)
/// });
/// let error = error.unwrap().unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
/// assert!(error.to_string().starts_with("cannot bind to 127.0.0.1:"));
/// let inside = error.get_ref().and_then(|inside| inside.downcast_ref::<AddressError>()).unwrap();
/// assert!(inside.cause().raw_os_error().is_some() && inside.address().internet().is_some());
/// ```
#[derive(Debug)]
pub struct AddressError {
    wanted: Wanted,
    address: Address,
    cause: io::Error,
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Bind,
    Connect,
}

impl AddressError {
    /// The address that was asked for, or the last of them, if a name had several.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What the driver said, and mostly the system.
    pub fn cause(&self) -> &io::Error {
        &self.cause
    }
}

/// The error of a socket that was to be at this address.
#[cold]
pub(super) fn binding(address: &Address, cause: io::Error) -> io::Error {
    naming(Wanted::Bind, address, cause)
}

/// The error of a socket that was to be connected to this address.
#[cold]
pub(super) fn connecting(address: &Address, cause: io::Error) -> io::Error {
    naming(Wanted::Connect, address, cause)
}

fn naming(wanted: Wanted, address: &Address, cause: io::Error) -> io::Error {
    if cause.get_ref().is_some() || cause.kind() == of_no_kind() {
        return cause;
    }
    let address = address.clone();
    io::Error::new(cause.kind(), AddressError { wanted, address, cause })
}

/// The kind of all errors that have none of their own, which cannot be named.
fn of_no_kind() -> io::ErrorKind {
    io::Error::from_raw_os_error(i32::MAX).kind()
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = match self.wanted {
            Wanted::Bind => "bind",
            Wanted::Connect => "connect",
        };
        write!(f, "cannot {wanted} to {}: {}", self.address, self.cause)
    }
}

impl core::error::Error for AddressError {
    /// That of the cause, which is in the message already.
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.cause.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_told_by_its_kind_keeps_its_number() {
        let address = Address::Path("/run/server".into());
        // Of Linux: too many descriptors.
        let full = binding(&address, io::Error::from_raw_os_error(24));
        assert_eq!(full.raw_os_error(), Some(24));
        let said = connecting(&address, io::Error::new(io::ErrorKind::NotFound, "in words"));
        assert_eq!(said.to_string(), "in words");
        let bare = connecting(&address, io::ErrorKind::ConnectionRefused.into());
        assert_eq!(bare.to_string(), "cannot connect to /run/server: connection refused");
        assert_eq!(bare.kind(), io::ErrorKind::ConnectionRefused);
    }
}
