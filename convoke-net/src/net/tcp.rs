//! TCP: how its listeners and connections are made, and what only they have.

use core::future::Future;
use core::net::SocketAddr;
use std::io;
use std::sync::Arc;

use super::address_error::{binding, connecting};
use super::kind::Internet;
use super::listener::Listener;
use super::socket_stream::SocketStream;
use super::to_address::{ToAddress, resolve};
use convoke_io::context::current_driver;
use convoke_io::driver::{Address, Driver, ListenOptions, SocketOption, Source, StandardSocket};
use convoke_io::transfer::{Toward, Transfer};

/// A connection over TCP.
pub type TcpStream = SocketStream<Internet>;

/// Takes connections over TCP.
pub type TcpListener = Listener<Internet>;

impl TcpListener {
    /// Listens at this address; at one of them, if the name has several. Port 0 is one that is free.
    ///
    /// - *Completes with* the listener; an error, if nobody may listen there; stopped.
    /// - *If dropped*, nothing.
    /// - *Runs on* the task, whose context it belongs to.
    #[track_caller]
    pub fn bind(address: impl ToAddress) -> impl Future<Output = io::Result<Self>> + Send {
        Self::bind_with(address, ListenOptions::default())
    }

    /// The same with options: with [`reuse_port`](ListenOptions::reuse_port) one listener for each core.
    #[track_caller]
    pub fn bind_with(
        address: impl ToAddress,
        options: ListenOptions,
    ) -> impl Future<Output = io::Result<Self>> + Send {
        let addresses = resolve(address);
        async move {
            let driver = current_driver()?;
            bind_first(addresses.await?, |address| driver.listen(address, &options)).map(Self::new)
        }
    }

    /// A group of listeners at the same address, over which the kernel spreads connections: one for each core. Port 0 is one that
    /// is free, the same for all. All of them belong to this task's context; where each core has a context of its own, a task there
    /// binds its own with [`reuse_port`](ListenOptions::reuse_port).
    ///
    /// - *Completes with* the listeners; an error; stopped.
    /// - *If dropped*, nothing.
    /// - *Runs on* the task.
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

    /// A listener of the standard library, which belongs to this task's context from now on.
    ///
    /// # Errors
    /// If there is no context here, or what the driver says.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::TcpListener(listener)).map(Self::new)
    }

    /// As a listener of the standard library, which does not block.
    ///
    /// # Errors
    /// What the driver says.
    pub fn into_std(self) -> io::Result<std::net::TcpListener> {
        match self.source.duplicate()? {
            StandardSocket::TcpListener(listener) => Ok(listener),
            other => Err(another(&other)),
        }
    }
}

impl TcpStream {
    /// Connects to this address; to one after the other until one answers, if the name has several.
    ///
    /// - *Completes with* the connection; the error of the last address; stopped.
    /// - *If dropped*, the attempt is given up.
    /// - *Runs on* the task, whose context the connection belongs to.
    #[track_caller]
    pub fn connect(address: impl ToAddress) -> impl Future<Output = io::Result<Self>> + Send {
        let addresses = resolve(address);
        async move {
            let driver = current_driver()?;
            let mut last = no_address();
            for address in addresses.await? {
                match connected(&*driver, Address::Internet(address)).await {
                    Ok(source) => return Ok(Self::new(source)),
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }

    /// A connection of the standard library, which belongs to this task's context from now on.
    ///
    /// # Errors
    /// If there is no context here, or what the driver says.
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<Self> {
        current_driver()?.adopt(StandardSocket::TcpStream(stream)).map(Self::new)
    }

    /// As a connection of the standard library, which does not block.
    ///
    /// # Errors
    /// What the driver says.
    pub fn into_std(self) -> io::Result<std::net::TcpStream> {
        match self.source.duplicate()? {
            StandardSocket::TcpStream(stream) => Ok(stream),
            other => Err(another(&other)),
        }
    }

    /// Whether small writes are sent at once.
    ///
    /// # Errors
    /// What the driver says.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set_option(SocketOption::NoDelay(nodelay))
    }

    /// Whether small writes are sent at once.
    ///
    /// # Errors
    /// What the driver says.
    pub fn nodelay(&self) -> io::Result<bool> {
        match self.option(SocketOption::NoDelay(false))? {
            SocketOption::NoDelay(nodelay) => Ok(nodelay),
            other => Err(io::Error::other(format!("the driver was asked for nodelay and said {other:?}"))),
        }
    }
}

/// A stream that is connected to this address. That there are no sockets of its kind here says nothing about the next one.
async fn connected(driver: &dyn Driver, to: Address) -> io::Result<Arc<dyn Source>> {
    let source = driver.stream(&to).map_err(|error| connecting(&to, error))?;
    let (connected, to) = Transfer::<_, Toward>::new(source.clone(), to).await;
    connected.map_err(|error| connecting(&to, error))?;
    Ok(source)
}

/// A source at the first of these addresses at which there can be one.
pub(super) fn bind_first<T>(
    addresses: Vec<SocketAddr>,
    mut bind: impl FnMut(&Address) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = no_address();
    for address in addresses.into_iter().map(Address::Internet) {
        match bind(&address) {
            Ok(source) => return Ok(source),
            Err(error) => last = binding(&address, error),
        }
    }
    Err(last)
}

fn no_address() -> io::Error {
    io::Error::other("there was no address to use")
}

#[cold]
pub(super) fn another(socket: &StandardSocket) -> io::Error {
    io::Error::other(format!("the driver has handed out another kind of socket: {socket:?}"))
}
