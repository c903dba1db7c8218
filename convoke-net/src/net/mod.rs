//! Sockets. Each belongs to the driver of the context that made it; it may be used from other threads, and by several tasks at
//! once. Every call hears of a stop, also if it would not have to wait, and loses nothing by it.
//!
//! | | |
//! | --- | --- |
//! | [`TcpListener`], [`TcpStream`] | connections over TCP |
//! | [`UnixListener`], [`UnixStream`] | connections in the file system |
//! | [`UdpSocket`], [`UnixDatagram`] | datagrams |
//! | [`SocketStream`] | what the two kinds of streams have in common; with its halves |
//! | [`resolve`], [`resolver`] | names, and who looks them up |
//! | [`AddressError`] | which address could not be used, and why |

mod address_error;
mod datagram;
mod halves;
mod kind;
mod listener;
mod poll_slot;
pub mod resolver;
mod socket_stream;
mod stream_io;
mod tcp;
mod to_address;
mod udp;
mod unix;

pub use address_error::AddressError;
pub use convoke_io::driver::{Address, ListenOptions, SocketOption};
pub use datagram::DatagramSocket;
pub use halves::{
    HoldsStream, OwnedReadHalf, OwnedWriteHalf, ReadHalf, Reads, ReuniteError, WriteHalf, Writes,
};
pub use kind::{Internet, Kind, Unix};
pub use listener::{Incoming, Listener};
pub use socket_stream::SocketStream;
pub use stream_io::{FillBuffer, SendBuffer};
pub use tcp::{TcpListener, TcpStream};
pub use to_address::{AddressQuery, ToAddress, resolve};
pub use udp::UdpSocket;
#[cfg(unix)]
pub use unix::{UnixDatagram, UnixListener, UnixStream};
