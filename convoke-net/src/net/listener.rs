//! `Listener`: the common part of TCP and Unix listeners.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::sync::Arc;

use futures_core::Stream;

use super::kind::Kind;
use super::poll_slot::{PollSlot, poll_location};
use super::readiness::readiness_methods;
use super::socket_stream::SocketStream;
use convoke_io::attempting::attempt;
use convoke_io::driver::{Accepted, Interest, SocketOption, Source};

/// A listener for connections: [`TcpListener`](super::TcpListener) or [`UnixListener`](super::UnixListener).
/// Dropping it closes it; connections that were not accepted are reset.
pub struct Listener<K> {
    pub(super) source: Arc<dyn Source>,
    _kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Listener<K> {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Self { source, _kind: PhantomData }
    }

    /// Accepts the next connection.
    ///
    /// - *Completes with* the connection and the address of the peer; an error; or stopped, and then no
    ///   connection was accepted.
    /// - *If dropped*, no connection was accepted.
    /// - *Runs on* the current task. The connection belongs to the listener's driver.
    ///
    /// Most errors are temporary: a peer has disconnected before it was accepted, or there are no descriptors
    /// left. In the second case each call fails at once until some are closed. A server that must survive
    /// that waits some milliseconds and tries again:
    ///
    /// ```no_run
    /// use std::io;
    /// use std::time::Duration;
    /// use convoke::net::{TcpListener, TcpStream};
    /// use convoke::scope::policy::ChildFailure;
    /// use convoke::prelude::*;
    /// use convoke::retry::{Backoff, retry};
    ///
    /// # async fn converse(_: TcpStream) -> io::Result<()> { Ok(()) }
    /// #[convoke::main]
    /// async fn main() -> io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:7000").await?;
    ///     scope(async |s| {
    ///         let log = |failure: ChildFailure<io::Error>| eprintln!("{failure}");
    ///         let clients = s.supervise(log);
    ///         loop {
    ///             let pause = Backoff::constant(Duration::from_millis(100));
    ///             let accepted = retry(pause, || listener.accept());
    ///             let (client, from) = accepted.await?;
    ///             clients.named(from.to_string()).spawn(converse(client));
    ///         }
    ///     })
    ///     .await
    /// }
    /// ```
    #[track_caller]
    pub fn accept(&self) -> impl Future<Output = io::Result<(SocketStream<K>, K::Address)>> + Send + '_ {
        attempt(&self.source, Interest::Read, |source| source.try_accept().and_then(into_stream))
    }

    /// Waits until a connection may be accepted. Otherwise like [`ready`](Self::ready).
    ///
    /// - *Completes with* `()`; an error of the driver; or stopped.
    /// - *If dropped*, nothing has happened.
    /// - *Runs on* the current task.
    ///
    /// ```
    /// use convoke::net::TcpListener;
    ///
    /// async fn wait(listener: &TcpListener) -> std::io::Result<()> {
    ///     listener.readable().await
    /// }
    /// ```
    #[track_caller]
    pub fn readable(&self) -> impl Future<Output = io::Result<()>> + Send + '_ {
        self.ready(Interest::Read)
    }

    readiness_methods!();

    /// Accepts a connection without waiting.
    ///
    /// # Errors
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, or an error as
    /// [`accept`](Listener::accept).
    pub fn try_accept(&self) -> io::Result<(SocketStream<K>, K::Address)> {
        self.source.try_accept().and_then(into_stream)
    }

    /// Returns a stream of all connections. It does not end.
    pub fn incoming(&self) -> Incoming<'_, K> {
        Incoming { listener: self, slot: PollSlot::new() }
    }

    /// Sets an option.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn set_option(&self, option: SocketOption) -> io::Result<()> {
        self.source.set_option(option)
    }

    /// Returns the value of an option. The value in `option` is ignored.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn option(&self, option: SocketOption) -> io::Result<SocketOption> {
        self.source.option(option)
    }

    /// Takes the pending error of the socket, if there is one, and clears it.
    ///
    /// # Errors
    /// Fails if the driver cannot query it.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.source.take_error()
    }

    /// Returns the address where it listens.
    ///
    /// # Errors
    /// Returns the error of the driver.
    pub fn local_addr(&self) -> io::Result<K::Address> {
        self.source.local_address().and_then(K::address)
    }
}

fn into_stream<K: Kind>(accepted: Accepted) -> io::Result<(SocketStream<K>, K::Address)> {
    Ok((SocketStream::new(accepted.source), K::address(accepted.peer)?))
}

/// The stream of [`Listener::incoming`].
#[derive(Debug)]
#[must_use = "streams do nothing until they are polled"]
pub struct Incoming<'a, K> {
    listener: &'a Listener<K>,
    slot: PollSlot,
}

impl<K: Kind> Stream for Incoming<'_, K> {
    type Item = io::Result<SocketStream<K>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let accept = |source: &dyn Source| source.try_accept().and_then(into_stream::<K>);
        let accepted = this.slot.poll(&*this.listener.source, Interest::Read, poll_location(), cx, accept);
        accepted.map(|accepted| Some(accepted.map(|(stream, _)| stream)))
    }
}

impl<K> Drop for Incoming<'_, K> {
    fn drop(&mut self) {
        self.slot.release(&*self.listener.source);
    }
}

#[cfg(unix)]
impl<K: Kind> std::os::fd::AsFd for Listener<K> {
    /// Returns its descriptor.
    ///
    /// # Panics
    /// If the driver has no descriptors, as in a simulation.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        super::kind::descriptor(&*self.source)
    }
}

impl<K> fmt::Debug for Listener<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.source).finish()
    }
}
