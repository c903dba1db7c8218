//! Sockets. Each socket belongs to the driver of the context whose task created it. It may be used from any
//! thread, and by several tasks at once. Every call can be stopped, even if it would not wait, and a stop
//! loses no data.
//!
//! A socket wraps a `Source`. Futures attempt a call on it and wait with a `Waiter` (`stream_io`, `datagram`,
//! `listener`). The `poll_…` methods of `futures-io` have no future to store that state in, so it lies beside
//! the source in a `PollSlot`. Types are generic over [`Kind`], so that TCP and Unix sockets share their
//! code.
//!
//! | | |
//! | --- | --- |
//! | [`TcpListener`], [`TcpStream`] | connections over TCP |
//! | [`UnixListener`], [`UnixStream`] | connections in the file system |
//! | [`UdpSocket`], [`UnixDatagram`] | datagrams |
//! | `AsyncFd` | a descriptor of any kind |
//! | [`serve()`] | a server on all cores |
//! | [`SocketStream`] | the common part of both kinds of streams, and its halves |
//! | [`resolve`], [`resolver`] | name lookup, and the service that does it |
//! | [`ConnectOptions`] | what is set before a stream connects, and how several addresses are tried |
//! | [`AddressError`], [`ConnectError`] | the addresses that could not be used, and why |

pub(crate) mod address_error;
mod async_fd;
mod closing;
pub(crate) mod connect;
mod datagram;
mod halves;
mod kind;
mod listener;
mod poll_slot;
mod readiness;
pub mod resolver;
pub(crate) mod server;
mod socket_options;
mod socket_stream;
mod stream_io;
mod tcp;
mod to_address;
mod udp;
mod unix;

pub use address_error::{AddressError, ConnectError};
#[cfg(unix)]
pub use async_fd::AsyncFd;
pub use connect::{CONNECT_HEAD_START, CONNECT_LIMIT, ConnectOptions};
pub use convoke_io::driver::{Address, Interest, ListenOptions, PeerCredentials, SocketOption};
pub use datagram::DatagramSocket;
pub use halves::{
    HoldsStream, OwnedReadHalf, OwnedWriteHalf, ReadHalf, Reads, ReuniteError, WriteHalf, Writes,
};
pub use kind::{Internet, Kind, Unix};
pub use listener::{Incoming, Listener};
pub use server::{
    ACCEPT_PAUSE, Accepting, ConnectionOutput, DEFAULT_CONNECTIONS, DRAIN_GRACE, ListenAt, Server,
    ServerReport, Serving, serve,
};
pub use socket_stream::{READ_GROWTH, SocketStream};
pub use stream_io::{FillBuffer, SendBuffer};
pub use tcp::{TcpListener, TcpStream};
pub use to_address::{AddressQuery, ToAddress, resolve};
pub use udp::UdpSocket;
#[cfg(unix)]
pub use unix::{UnixDatagram, UnixListener, UnixStream};
