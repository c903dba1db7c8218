//! Creation of sockets. All of them are non-blocking.

use std::io;

use convoke_io::driver::{Address, ListenOptions, StandardSocket};
use socket2::{Protocol, Socket, Type};

use crate::addresses;

/// Creates a listener for streams.
pub(crate) fn listener(at: &Address, options: &ListenOptions) -> io::Result<StandardSocket> {
    let socket = new(at, Type::STREAM)?;
    bind(&socket, at, options)?;
    socket.listen(i32::try_from(options.backlog).unwrap_or(i32::MAX))?;
    Ok(match at {
        #[cfg(unix)]
        Address::Path(_) | Address::Unnamed => StandardSocket::UnixListener(socket.into()),
        _ => StandardSocket::TcpListener(socket.into()),
    })
}

/// Creates a stream that is not connected.
pub(crate) fn stream(like: &Address) -> io::Result<StandardSocket> {
    let socket = new(like, Type::STREAM)?;
    Ok(match like {
        #[cfg(unix)]
        Address::Path(_) | Address::Unnamed => StandardSocket::UnixStream(socket.into()),
        _ => StandardSocket::TcpStream(socket.into()),
    })
}

/// Creates a datagram socket. It is not bound if the address is `Unnamed`.
pub(crate) fn datagrams(at: &Address, options: &ListenOptions) -> io::Result<StandardSocket> {
    let socket = new(at, Type::DGRAM)?;
    if *at != Address::Unnamed {
        bind(&socket, at, options)?;
    }
    Ok(match at {
        #[cfg(unix)]
        Address::Path(_) | Address::Unnamed => StandardSocket::UnixDatagram(socket.into()),
        _ => StandardSocket::UdpSocket(socket.into()),
    })
}

/// Creates two streams that are connected to each other.
#[cfg(unix)]
pub(crate) fn pair() -> io::Result<(StandardSocket, StandardSocket)> {
    let (one, other) = std::os::unix::net::UnixStream::pair()?;
    one.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    Ok((StandardSocket::UnixStream(one), StandardSocket::UnixStream(other)))
}

fn new(like: &Address, kind: Type) -> io::Result<Socket> {
    let protocol = match like {
        Address::Internet(_) if kind == Type::STREAM => Some(Protocol::TCP),
        Address::Internet(_) => Some(Protocol::UDP),
        _ => None,
    };
    let socket = Socket::new(addresses::domain(like)?, kind, protocol)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn bind(socket: &Socket, at: &Address, options: &ListenOptions) -> io::Result<()> {
    if let Address::Internet(internet) = at {
        // Not on Windows, where it would let two servers take the same address from each other. Not for
        // datagrams either: two receivers at the same address are an error.
        #[cfg(not(windows))]
        if options.reuse_address && socket.r#type()? == Type::STREAM {
            socket.set_reuse_address(true)?;
        }
        if options.reuse_port {
            reuse_port(socket)?;
        }
        if let Some(only) = options.only_v6
            && internet.is_ipv6()
        {
            socket.set_only_v6(only)?;
        }
    }
    socket.bind(&addresses::to_any(at)?)
}

#[cfg(all(unix, not(any(target_os = "solaris", target_os = "illumos", target_os = "cygwin"))))]
fn reuse_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(all(unix, not(any(target_os = "solaris", target_os = "illumos", target_os = "cygwin")))))]
fn reuse_port(_: &Socket) -> io::Result<()> {
    Err(convoke_io::driver::unsupported("ports that several listeners share"))
}
