//! Unix sockets: constructors, with a path in the file system or without a name.
#![cfg(unix)]

use core::future::Future;
use core::task::{Context, Poll};
use std::io;
use std::os::unix::net;
use std::path::{Path, PathBuf};

use super::address_error::{bind_error, connect_error};
use super::datagram::DatagramSocket;
use super::kind::Unix;
use super::listener::Listener;
use super::socket_stream::SocketStream;
use super::tcp::wrong_socket;
use convoke_io::context::current_driver;
use convoke_io::driver::{Address, ListenOptions, PeerCredentials, StandardSocket};
use convoke_io::transfer::{Toward, Transfer};

/// A Unix stream connection.
pub type UnixStream = SocketStream<Unix>;

/// A listener for Unix streams.
pub type UnixListener = Listener<Unix>;

/// A Unix datagram socket.
pub type UnixDatagram = DatagramSocket<Unix>;

impl UnixListener {
    /// Binds a listener to this path, which must not exist. The file stays when the listener is dropped.
    ///
    /// # Errors
    /// Fails if there is no I/O context, or with the error of the driver.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let (driver, address) = (current_driver()?, path_address(path.as_ref()));
        let bound = driver.listen(&address, &ListenOptions::default());
        bound.map(Self::new).map_err(|error| bind_error(&address, error))
    }

    /// Adopts a listener of the standard library: it belongs to the current task's context from now on.
    ///
    /// # Errors
    /// Fails if there is no I/O context, or with the error of the driver.
    pub fn from_std(listener: net::UnixListener) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::UnixListener(listener)).map(Self::new)
    }

    /// Converts it to a listener of the standard library, in non-blocking mode.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn into_std(self) -> io::Result<net::UnixListener> {
        match self.source.duplicate()? {
            StandardSocket::UnixListener(listener) => Ok(listener),
            other => Err(wrong_socket(&other)),
        }
    }
}

impl UnixStream {
    /// Connects to the listener at this path.
    ///
    /// - *Completes with* the connection; an error; or stopped.
    /// - *If dropped*, the attempt is cancelled.
    /// - *Runs on* the current task. The connection belongs to the task's context.
    ///
    /// ```
    /// use convoke::net::{UnixListener, UnixStream};
    /// use convoke::prelude::*;
    ///
    /// let path = std::env::temp_dir().join(format!("convoke-doc-{}", std::process::id()));
    /// let context = convoke::driver::io_context()?;
    /// let connected = context.block_on(async {
    ///     let listener = UnixListener::bind(&path)?;
    ///     try_join((UnixStream::connect(&path), listener.accept())).await
    /// });
    /// connected.unwrap()?;
    /// std::fs::remove_file(&path)?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn connect(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Self>> + Send {
        let address = path_address(path.as_ref());
        async move {
            let source =
                current_driver()?.stream(&address).map_err(|error| connect_error(&address, error))?;
            let (connected, address) = Transfer::<_, Toward>::new(source.clone(), address).await;
            connected.map_err(|error| connect_error(&address, error))?;
            Ok(Self::new(source))
        }
    }

    /// Returns the user, the group and the process at the other end, as they were when it connected.
    ///
    /// # Errors
    /// Returns the error of the driver. A simulated host has no users.
    ///
    /// ```
    /// use convoke::net::UnixStream;
    ///
    /// let context = convoke::driver::io_context()?;
    /// let peer = context.block_on(async { UnixStream::pair()?.0.peer_cred() });
    /// assert!(peer.unwrap()?.pid().is_none_or(|pid| pid as u32 == std::process::id()));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn peer_cred(&self) -> io::Result<PeerCredentials> {
        self.source.peer_credentials()
    }

    /// Creates two streams that are connected to each other.
    ///
    /// # Errors
    /// Fails if there is no I/O context, or with the error of the driver.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = current_driver()?.pair()?;
        Ok((Self::new(one), Self::new(other)))
    }

    /// Adopts a stream of the standard library: it belongs to the current task's context from now on.
    ///
    /// # Errors
    /// Fails if there is no I/O context, or with the error of the driver.
    pub fn from_std(stream: net::UnixStream) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::UnixStream(stream)).map(Self::new)
    }

    /// Converts it to a stream of the standard library, in non-blocking mode.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn into_std(self) -> io::Result<net::UnixStream> {
        match self.source.duplicate()? {
            StandardSocket::UnixStream(stream) => Ok(stream),
            other => Err(wrong_socket(&other)),
        }
    }
}

impl UnixDatagram {
    /// Binds a socket to this path, which must not exist. The file stays when the socket is dropped.
    ///
    /// # Errors
    /// Fails if there is no I/O context, or with the error of the driver.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let (driver, address) = (current_driver()?, path_address(path.as_ref()));
        let bound = driver.datagrams(&address, &ListenOptions::default());
        bound.map(Self::new).map_err(|error| bind_error(&address, error))
    }

    /// Creates a socket without a name.
    ///
    /// # Errors
    /// Fails if there is no I/O context, or with the error of the driver.
    pub fn unbound() -> io::Result<Self> {
        current_driver()?.datagrams(&Address::Unnamed, &ListenOptions::default()).map(Self::new)
    }

    /// Sets the peer: from now on datagrams are sent to, and received from, this path only.
    ///
    /// # Errors
    /// Fails if there is no socket at this path.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let address = path_address(path.as_ref());
        self.source.connect_datagrams(&address).map_err(|error| connect_error(&address, error))
    }

    /// Sends a datagram to the socket at this path.
    ///
    /// - *Completes with* the number of bytes sent; an error; or stopped, and then nothing was sent.
    /// - *If dropped*, nothing was sent.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::UnixDatagram;
    ///
    /// async fn log(socket: &UnixDatagram, line: &str) -> std::io::Result<usize> {
    ///     socket.send_to(line.as_bytes(), "/dev/log").await
    /// }
    /// ```
    pub fn send_to<'a>(
        &'a self,
        buffer: &'a [u8],
        path: impl AsRef<Path> + 'a,
    ) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        self.send_to_address(buffer, path_address(path.as_ref()))
    }

    /// Sends a datagram to the socket at this path, without waiting.
    ///
    /// # Errors
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if it does not fit, or the error of the driver.
    pub fn try_send_to(&self, buffer: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        self.source.try_send_to(buffer, &path_address(path.as_ref()))
    }

    /// Polls to send a datagram to the socket at this path. Only the waker of the last call is woken; use
    /// [`send_to`](UnixDatagram::send_to) for several tasks.
    ///
    /// # Errors
    /// Returns the error of the driver.
    #[track_caller]
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buffer: &[u8],
        path: impl AsRef<Path>,
    ) -> Poll<io::Result<usize>> {
        self.poll_send_to_address(cx, buffer, &path_address(path.as_ref()))
    }

    /// Adopts a socket of the standard library: it belongs to the current task's context from now on.
    ///
    /// # Errors
    /// Fails if there is no I/O context, or with the error of the driver.
    pub fn from_std(socket: net::UnixDatagram) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::UnixDatagram(socket)).map(Self::new)
    }

    /// Converts it to a socket of the standard library, in non-blocking mode.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn into_std(self) -> io::Result<net::UnixDatagram> {
        match self.source.duplicate()? {
            StandardSocket::UnixDatagram(socket) => Ok(socket),
            other => Err(wrong_socket(&other)),
        }
    }
}

fn path_address(path: &Path) -> Address {
    Address::Path(PathBuf::from(path))
}
