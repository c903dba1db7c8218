//! `AddressError`: an error that names the address that could not be used, and for what. "Address already in
//! use" alone does not tell which port to look for. `ConnectError` is a list of them.

use core::fmt;
use core::net::SocketAddr;
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
/// let error = context.block_on(async {
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
    /// Returns the address that was requested, or the last one tried if a listener's name has several.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the error of the driver, mostly that of the system.
    pub fn cause(&self) -> &io::Error {
        &self.cause
    }
}

/// The errors of all addresses of a name, none of which could be connected to, in the order in which the
/// attempts failed. It is the inner error of the `io::Error` that
/// [`TcpStream::connect`](super::TcpStream::connect) returns if there are several addresses, and has the kind
/// of the last one.
///
/// ```
/// use convoke::net::{ConnectError, TcpListener, TcpStream};
///
/// let context = convoke::driver::io_context()?;
/// let error = context.block_on(async {
///     let one = TcpListener::bind("127.0.0.1:0").await?;
///     let other = TcpListener::bind("127.0.0.1:0").await?;
///     let closed = [one.local_addr()?, other.local_addr()?];
///     drop((one, other));
///     TcpStream::connect(&closed[..]).await.map(drop)
/// });
/// let error = error.unwrap().unwrap_err();
/// let inside = error.get_ref().unwrap().downcast_ref::<ConnectError>().unwrap();
/// assert_eq!(inside.errors().len(), 2);
/// let message = error.to_string();
/// assert!(message.starts_with("cannot connect to any of 2 addresses: 127.0.0.1:"));
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct ConnectError {
    errors: Vec<AddressError>,
}

impl ConnectError {
    /// Returns the errors, in the order in which the attempts failed.
    pub fn errors(&self) -> &[AddressError] {
        &self.errors
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot connect to any of {} addresses", self.errors.len())?;
        for (index, error) in self.errors.iter().enumerate() {
            write!(f, "{} {}: {}", if index == 0 { ":" } else { ";" }, error.address, error.cause)?;
        }
        Ok(())
    }
}

impl core::error::Error for ConnectError {}

/// Creates the error for an address that did not answer in time. The cause says how long.
#[cold]
pub(super) fn no_answer(address: SocketAddr, cause: io::Error) -> io::Error {
    let address = Address::Internet(address);
    io::Error::new(cause.kind(), AddressError { wanted: Wanted::Connect, address, cause })
}

/// Creates the error for addresses that could not be connected to.
#[cold]
pub(super) fn all_failed(errors: Vec<(SocketAddr, io::Error)>) -> io::Error {
    let kind = errors.last().map_or(io::ErrorKind::Other, |(_, error)| error.kind());
    let with_address = |(address, cause)| AddressError {
        wanted: Wanted::Connect,
        address: Address::Internet(address),
        cause,
    };
    let errors = errors.into_iter().map(with_address).collect();
    // The kind of errors without one of their own cannot be used to create an error.
    let kind = if kind == uncategorized() { io::ErrorKind::Other } else { kind };
    io::Error::new(kind, ConnectError { errors })
}

/// Creates the error for a socket that could not be bound to this address.
#[cold]
pub fn bind_error(address: &Address, cause: io::Error) -> io::Error {
    with_address(Wanted::Bind, address, cause)
}

/// Creates the error for a socket that could not be connected to this address.
#[cold]
pub fn connect_error(address: &Address, cause: io::Error) -> io::Error {
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
