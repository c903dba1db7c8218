//! TCP: constructors of listeners and connections, and options that only TCP has.

use core::future::Future;
use core::net::SocketAddr;
use std::io;

use super::address_error::bind_error;
use super::connect::{ConnectOptions, connect};
use super::kind::Internet;
use super::listener::Listener;
use super::socket_stream::SocketStream;
use super::to_address::{ToAddress, resolve, resolve_own};
use convoke_io::context::current_driver;
use convoke_io::driver::{Address, ListenOptions, StandardSocket};

/// A TCP connection.
pub type TcpStream = SocketStream<Internet>;

/// A TCP listener.
pub type TcpListener = Listener<Internet>;

impl TcpListener {
    /// Binds a listener to this address, or to the first usable one if a name has several. Port 0 selects a
    /// free port.
    ///
    /// - *Completes with* the listener; an error, if no address can be used; or stopped.
    /// - *If dropped*, nothing is bound.
    /// - *Runs on* the current task. The listener belongs to the task's context.
    ///
    /// ```
    /// use convoke::net::TcpListener;
    ///
    /// let context = convoke::driver::io_context()?;
    /// let listener = context.block_on(TcpListener::bind("127.0.0.1:0")).unwrap()?;
    /// assert_ne!(listener.local_addr()?.port(), 0);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn bind(address: impl ToAddress) -> impl Future<Output = io::Result<Self>> + Send {
        Self::bind_with(address, ListenOptions::default())
    }

    /// Binds a listener with options, for example [`reuse_port`](ListenOptions::reuse_port) for one listener
    /// on each core. Otherwise like [`bind`](TcpListener::bind).
    ///
    /// - *Completes with* the listener; an error; or stopped.
    /// - *If dropped*, nothing is bound.
    /// - *Runs on* the current task. It belongs to the task's context.
    ///
    /// ```
    /// use convoke::net::{ListenOptions, TcpListener};
    ///
    /// async fn listen() -> std::io::Result<TcpListener> {
    ///     TcpListener::bind_with("[::]:80", ListenOptions::new().only_v6(true)).await
    /// }
    /// ```
    #[track_caller]
    pub fn bind_with(
        address: impl ToAddress,
        options: ListenOptions,
    ) -> impl Future<Output = io::Result<Self>> + Send {
        let addresses = resolve_own(address);
        async move {
            let driver = current_driver()?;
            bind_first(addresses.await?, |address| driver.listen(address, &options)).map(Self::new)
        }
    }

    /// Binds a group of listeners to the same address; the kernel spreads connections over them. Port 0
    /// selects one free port for all. All listeners belong to the context of the current task. If each core
    /// has a context of its own, bind one listener there with [`reuse_port`](ListenOptions::reuse_port)
    /// instead.
    ///
    /// - *Completes with* the listeners; an error; or stopped.
    /// - *If dropped*, nothing is bound.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpListener;
    ///
    /// let context = convoke::driver::io_context()?;
    /// let group = context.block_on(TcpListener::bind_group("127.0.0.1:0", 2)).unwrap()?;
    /// assert_eq!(group[0].local_addr()?, group[1].local_addr()?);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn bind_group(
        address: impl ToAddress,
        listeners: usize,
    ) -> impl Future<Output = io::Result<Vec<Self>>> + Send {
        let options = ListenOptions::default().reuse_port(true);
        let first = Self::bind_with(address, options.clone());
        async move {
            let mut group = Vec::with_capacity(listeners);
            if listeners > 0 {
                group.push(first.await?);
            }
            while group.len() < listeners {
                let address = group[0].local_addr()?;
                group.push(Self::bind_with(address, options.clone()).await?);
            }
            Ok(group)
        }
    }

    /// Adopts a listener of the standard library: it belongs to the current task's context from now on.
    ///
    /// # Errors
    /// Fails if there is no I/O context, or with the error of the driver.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::TcpListener(listener)).map(Self::new)
    }

    /// Converts it to a listener of the standard library, in non-blocking mode.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn into_std(self) -> io::Result<std::net::TcpListener> {
        match self.source.duplicate()? {
            StandardSocket::TcpListener(listener) => Ok(listener),
            other => Err(wrong_socket(&other)),
        }
    }
}

impl TcpStream {
    /// Connects to this address. If a name has several addresses, they are tried as RFC 8305 ("happy
    /// eyeballs") says: the families alternate, each attempt has a head start of
    /// [`CONNECT_HEAD_START`](super::CONNECT_HEAD_START) before the next one begins, and the first connection
    /// wins. An attempt ends after [`CONNECT_LIMIT`](super::CONNECT_LIMIT).
    ///
    /// - *Completes with* the connection, after all other attempts have ended; an error that names the
    ///   address ([`AddressError`](super::AddressError)), or all addresses if there are several
    ///   ([`ConnectError`](super::ConnectError)); or stopped.
    /// - *If dropped*, the attempts are cancelled.
    /// - *Runs on* the current task. The connection belongs to the task's context.
    ///
    /// ```
    /// use convoke::net::{TcpListener, TcpStream};
    /// use convoke::prelude::*;
    ///
    /// let context = convoke::driver::io_context()?;
    /// let connected = context.block_on(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let connect = TcpStream::connect(listener.local_addr()?);
    ///     try_join((connect, listener.accept())).await
    /// });
    /// let (client, (server, peer)) = connected.unwrap()?;
    /// assert_eq!(client.local_addr()?, peer);
    /// assert_eq!(client.peer_addr()?, server.local_addr()?);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn connect(address: impl ToAddress) -> impl Future<Output = io::Result<Self>> + Send {
        Self::connect_with(address, ConnectOptions::new())
    }

    /// Connects with options: a local address, options of the socket, head start and limit. Otherwise like
    /// [`connect`](TcpStream::connect).
    ///
    /// - *Completes with* the connection, an error, or stopped.
    /// - *If dropped*, the attempts are cancelled.
    /// - *Runs on* the current task. The connection belongs to the task's context.
    ///
    /// ```
    /// use convoke::net::{ConnectOptions, TcpListener, TcpStream};
    ///
    /// let context = convoke::driver::io_context()?;
    /// let connected = context.block_on(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let from_localhost = ConnectOptions::new().bind(([127, 0, 0, 1], 0));
    ///     TcpStream::connect_with(listener.local_addr()?, from_localhost).await
    /// });
    /// assert!(connected.unwrap()?.local_addr()?.ip().is_loopback());
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn connect_with(
        address: impl ToAddress,
        options: ConnectOptions,
    ) -> impl Future<Output = io::Result<Self>> + Send {
        let addresses = resolve(address);
        async move {
            let driver = current_driver()?;
            connect(driver, addresses.await?, options).await.map(Self::new)
        }
    }

    /// Adopts a connection of the standard library: it belongs to the current task's context from now on.
    ///
    /// # Errors
    /// Fails if there is no I/O context, or with the error of the driver.
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::TcpStream(stream)).map(Self::new)
    }

    /// Converts it to a connection of the standard library, in non-blocking mode.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn into_std(self) -> io::Result<std::net::TcpStream> {
        match self.source.duplicate()? {
            StandardSocket::TcpStream(stream) => Ok(stream),
            other => Err(wrong_socket(&other)),
        }
    }
}

/// Binds to the first of these addresses that can be used.
pub(super) fn bind_first<T>(
    addresses: Vec<SocketAddr>,
    mut bind: impl FnMut(&Address) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = no_address();
    for address in addresses.into_iter().map(Address::Internet) {
        match bind(&address) {
            Ok(source) => return Ok(source),
            Err(error) => last = bind_error(&address, error),
        }
    }
    Err(last)
}

fn no_address() -> io::Error {
    io::Error::other("there is no address to use")
}

#[cold]
pub(super) fn wrong_socket(socket: &StandardSocket) -> io::Error {
    io::Error::other(format!("the driver returned another kind of socket: {socket:?}"))
}
