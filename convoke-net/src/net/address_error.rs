//! `AddressError`: an error that names the address that could not be used, and for what. "Address already in
//! use" alone does not tell which port to look for.

use core::fmt;
use std::io;

use convoke_io::driver::Address;

/// The address that a socket could not be bound or connected to, and the reason. It is the inner error of the
/// `io::Error` that a `bind` or a `connect` returns, and has the kind of its [cause](AddressError::cause).
///
/// An `io::Error` has either the number of a system error or an inner error. This one names the address in
/// its message; the number is in the cause. An error is passed on unchanged if its kind says less than its
/// number (too many descriptors, for example) or if it has an inner error already.
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
/// let inside = error.get_ref().unwrap().downcast_ref::<AddressError>().unwrap();
/// assert!(inside.cause().raw_os_error().is_some());
/// assert!(inside.address().internet().is_some());
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
    /// Returns the address that was requested, or the last one tried if a name has several.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the error of the driver, mostly that of the system.
    pub fn cause(&self) -> &io::Error {
        &self.cause
    }
}

/// Creates the error for a socket that could not be bound to this address.
#[cold]
pub(super) fn bind_error(address: &Address, cause: io::Error) -> io::Error {
    with_address(Wanted::Bind, address, cause)
}

/// Creates the error for a socket that could not be connected to this address.
#[cold]
pub(super) fn connect_error(address: &Address, cause: io::Error) -> io::Error {
    with_address(Wanted::Connect, address, cause)
}

fn with_address(wanted: Wanted, address: &Address, cause: io::Error) -> io::Error {
    if cause.get_ref().is_some() || cause.kind() == uncategorized() {
        return cause;
    }
    let address = address.clone();
    io::Error::new(cause.kind(), AddressError { wanted, address, cause })
}

/// Returns the kind of errors that have none of their own. It is unstable and so cannot be named.
fn uncategorized() -> io::ErrorKind {
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
    /// Returns the source of the cause. The cause itself is part of the message.
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.cause.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_a_kind_of_its_own_keeps_its_number() {
        let address = Address::Path("/run/server".into());
        // Linux: too many open files.
        let full = bind_error(&address, io::Error::from_raw_os_error(24));
        assert_eq!(full.raw_os_error(), Some(24));
        let said = connect_error(&address, io::Error::new(io::ErrorKind::NotFound, "in words"));
        assert_eq!(said.to_string(), "in words");
        let bare = connect_error(&address, io::ErrorKind::ConnectionRefused.into());
        assert_eq!(bare.to_string(), "cannot connect to /run/server: connection refused");
        assert_eq!(bare.kind(), io::ErrorKind::ConnectionRefused);
    }
}
