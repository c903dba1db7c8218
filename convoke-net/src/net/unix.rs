//! Unix sockets: how they are made, in the file system or without a name.
#![cfg(unix)]

use core::future::Future;
use std::io;
use std::os::unix::net;
use std::path::{Path, PathBuf};

use super::address_error::{binding, connecting};
use super::datagram::DatagramSocket;
use super::kind::Unix;
use super::listener::Listener;
use super::socket_stream::SocketStream;
use super::tcp::another;
use convoke_io::context::current_driver;
use convoke_io::driver::{Address, ListenOptions, StandardSocket};
use convoke_io::transfer::{Toward, Transfer};

/// A connection in the file system.
pub type UnixStream = SocketStream<Unix>;

/// Takes connections in the file system.
pub type UnixListener = Listener<Unix>;

/// A socket for datagrams in the file system.
pub type UnixDatagram = DatagramSocket<Unix>;

impl UnixListener {
    /// Listens at this path, which must not exist. The file stays when the listener goes.
    ///
    /// # Errors
    /// If there is no context here, or what the driver says.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let (driver, address) = (current_driver()?, at(path.as_ref()));
        let bound = driver.listen(&address, &ListenOptions::default());
        bound.map(Self::new).map_err(|error| binding(&address, error))
    }

    /// A listener of the standard library, which belongs to this task's context from now on.
    ///
    /// # Errors
    /// If there is no context here, or what the driver says.
    pub fn from_std(listener: net::UnixListener) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::UnixListener(listener)).map(Self::new)
    }

    /// As a listener of the standard library, which does not block.
    ///
    /// # Errors
    /// What the driver says.
    pub fn into_std(self) -> io::Result<net::UnixListener> {
        match self.source.duplicate()? {
            StandardSocket::UnixListener(listener) => Ok(listener),
            other => Err(another(&other)),
        }
    }
}

impl UnixStream {
    /// Connects to who listens at this path.
    ///
    /// - *Completes with* the connection; an error; stopped.
    /// - *If dropped*, the attempt is given up.
    /// - *Runs on* the task, whose context the connection belongs to.
    pub fn connect(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Self>> + Send {
        let address = at(path.as_ref());
        async move {
            let source = current_driver()?.stream(&address).map_err(|error| connecting(&address, error))?;
            let (connected, address) = Transfer::<_, Toward>::new(source.clone(), address).await;
            connected.map_err(|error| connecting(&address, error))?;
            Ok(Self::new(source))
        }
    }

    /// Two streams that are connected with each other.
    ///
    /// # Errors
    /// If there is no context here, or what the driver says.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = current_driver()?.pair()?;
        Ok((Self::new(one), Self::new(other)))
    }

    /// A stream of the standard library, which belongs to this task's context from now on.
    ///
    /// # Errors
    /// If there is no context here, or what the driver says.
    pub fn from_std(stream: net::UnixStream) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::UnixStream(stream)).map(Self::new)
    }

    /// As a stream of the standard library, which does not block.
    ///
    /// # Errors
    /// What the driver says.
    pub fn into_std(self) -> io::Result<net::UnixStream> {
        match self.source.duplicate()? {
            StandardSocket::UnixStream(stream) => Ok(stream),
            other => Err(another(&other)),
        }
    }
}

impl UnixDatagram {
    /// A socket at this path, which must not exist. The file stays when the socket goes.
    ///
    /// # Errors
    /// If there is no context here, or what the driver says.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let (driver, address) = (current_driver()?, at(path.as_ref()));
        let bound = driver.datagrams(&address, &ListenOptions::default());
        bound.map(Self::new).map_err(|error| binding(&address, error))
    }

    /// A socket without a name.
    ///
    /// # Errors
    /// If there is no context here, or what the driver says.
    pub fn unbound() -> io::Result<Self> {
        current_driver()?.datagrams(&Address::Unnamed, &ListenOptions::default()).map(Self::new)
    }

    /// From now on datagrams go to, and come from, this path.
    ///
    /// # Errors
    /// If nobody is there.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let address = at(path.as_ref());
        self.source.connect_datagrams(&address).map_err(|error| connecting(&address, error))
    }

    /// Sends a datagram to who is at this path.
    ///
    /// - *Completes with* how much was sent; an error; stopped, and then nothing was sent.
    /// - *If dropped*, nothing was sent.
    /// - *Runs on* the task.
    pub fn send_to<'a>(
        &'a self,
        buffer: &'a [u8],
        path: impl AsRef<Path> + 'a,
    ) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        self.send_to_address(buffer, at(path.as_ref()))
    }

    /// A socket of the standard library, which belongs to this task's context from now on.
    ///
    /// # Errors
    /// If there is no context here, or what the driver says.
    pub fn from_std(socket: net::UnixDatagram) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::UnixDatagram(socket)).map(Self::new)
    }

    /// As a socket of the standard library, which does not block.
    ///
    /// # Errors
    /// What the driver says.
    pub fn into_std(self) -> io::Result<net::UnixDatagram> {
        match self.source.duplicate()? {
            StandardSocket::UnixDatagram(socket) => Ok(socket),
            other => Err(another(&other)),
        }
    }
}

fn at(path: &Path) -> Address {
    Address::Path(PathBuf::from(path))
}
