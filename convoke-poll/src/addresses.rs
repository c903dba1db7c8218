//! Conversion of addresses between the kernel's form and that of the driver contract. An abstract name of
//! Linux is a path that begins with a zero byte.

use std::io;

use convoke_io::driver::Address;
use socket2::{Domain, SockAddr};

/// Converts an address to the kernel's form.
pub(crate) fn to_any(address: &Address) -> io::Result<SockAddr> {
    match address {
        Address::Internet(address) => Ok((*address).into()),
        #[cfg(unix)]
        Address::Path(path) => SockAddr::unix(path),
        _ => Err(wrong_kind(address)),
    }
}

/// Returns the socket family of an address.
pub(crate) fn domain(address: &Address) -> io::Result<Domain> {
    match address {
        Address::Internet(address) => Ok(Domain::for_address(*address)),
        #[cfg(unix)]
        Address::Path(_) | Address::Unnamed => Ok(Domain::UNIX),
        _ => Err(wrong_kind(address)),
    }
}

/// Converts an address from the kernel's form.
pub(crate) fn of_any(address: &SockAddr) -> io::Result<Address> {
    if let Some(internet) = address.as_socket() {
        return Ok(Address::Internet(internet));
    }
    #[cfg(unix)]
    if address.is_unix() {
        return Ok(of_unix_parts(address.as_pathname(), address.as_abstract_namespace()));
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel returned an address of an unknown kind"))
}

/// Converts an address from the standard library's form.
#[cfg(unix)]
pub(crate) fn of_unix(address: &std::os::unix::net::SocketAddr) -> Address {
    #[cfg(target_os = "linux")]
    let name = std::os::linux::net::SocketAddrExt::as_abstract_name(address);
    #[cfg(target_os = "android")]
    let name = std::os::android::net::SocketAddrExt::as_abstract_name(address);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let name = None;
    of_unix_parts(address.as_pathname(), name)
}

/// Converts the sender of a datagram. The kernel does not report a sender without a name.
#[cfg(unix)]
pub(crate) fn of_sender(address: &SockAddr) -> io::Result<Address> {
    if address.is_unix() { of_any(address) } else { Ok(Address::Unnamed) }
}

#[cfg(unix)]
fn of_unix_parts(path: Option<&std::path::Path>, name: Option<&[u8]>) -> Address {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    match (path, name) {
        (Some(path), _) => Address::Path(path.to_path_buf()),
        (None, Some(name)) => {
            let bytes = core::iter::once(0).chain(name.iter().copied()).collect();
            Address::Path(OsString::from_vec(bytes).into())
        }
        (None, None) => Address::Unnamed,
    }
}

/// Creates the error for an address that this socket or this system cannot use.
pub(crate) fn wrong_kind(address: &Address) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{address} is not an address for this kind of socket"),
    )
}
