//! An acceptor: accepts connections and starts a child for each, until it is asked to stop.

use core::future::Future;
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use convoke_exec::time::sleep;
use convoke_io::IoExecutor;
use convoke_io::context::{Contexts, current_driver, driver_of_executor};
use convoke_io::driver::StandardSocket;
use convoke_sync::OwnedPermit;
use convoke_task::{Scope, checkpoint, frame_dyn, scope};

use super::SharedServer;
use super::connection::{converse, converse_there};
use super::report::{ConnectionOutput, ServerReport};
use crate::net::kind::Kind;
use crate::net::listener::Listener;
use crate::net::socket_stream::SocketStream;

/// The time for which an acceptor pauses if the system has no descriptors or memory for a connection.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections of one listener. They run on the contexts of `hand_over` in turn, or else on the executor
/// of the current task.
pub(super) async fn accept_all<K, H, F>(
    listener: Listener<K>,
    server: Arc<SharedServer<H>>,
    hand_over: Option<HandOver<K, H>>,
) -> io::Result<()>
where
    K: Kind,
    H: Fn(SocketStream<K>, K::Address) -> F + Send + Sync + 'static,
    F: Future<Output: ConnectionOutput> + Send + 'static,
{
    scope(async move |s| {
        // Owned by the body: a stop closes it at once, while connections still end.
        let listener = listener;
        let mut out_of_resources = false;
        loop {
            let (stream, from) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    pause_after(error, &server, &mut out_of_resources).await?;
                    continue;
                }
            };
            out_of_resources = false;
            // After the connection was accepted: an acceptor that waits for one must not keep a place from others.
            let permit = server.bound.take(1).await;
            if let Some(hand_over) = &hand_over
                && let Some(context) = hand_over.next()
                // Without a descriptor for the duplicate it is served here.
                && let Ok(socket) = stream.source.duplicate()
            {
                drop(stream);
                (hand_over.spawn)(&s, context, &server, Accepted { socket, from, permit });
                continue;
            }
            let connection = converse(server.clone(), stream, from, permit);
            s.named(server.connection_name.clone()).spawn(connection);
        }
    })
    .await
}

/// The contexts that one acceptor hands its connections to.
pub(super) struct HandOver<K: Kind, H> {
    contexts: Contexts,
    /// The context of the acceptor: its connections are not handed over.
    own: Option<IoExecutor>,
    spawn: SpawnThere<K, H>,
}

/// A connection that was accepted for another context.
pub(super) struct Accepted<K: Kind> {
    socket: StandardSocket,
    from: K::Address,
    permit: OwnedPermit,
}

/// The function [`spawn_there`]. Servers that hand nothing over do not have it, and so do not contain it.
pub(super) type SpawnThere<K, H> =
    fn(&Scope<io::Result<()>>, &IoExecutor, &Arc<SharedServer<H>>, Accepted<K>);

/// Starts a connection on another context.
pub(super) fn spawn_there<K, H, F>(
    s: &Scope<io::Result<()>>,
    context: &IoExecutor,
    server: &Arc<SharedServer<H>>,
    Accepted { socket, from, permit }: Accepted<K>,
) where
    K: Kind,
    H: Fn(SocketStream<K>, K::Address) -> F + Send + Sync + 'static,
    F: Future<Output: ConnectionOutput> + Send + 'static,
{
    // Erased as acceptors are, so that both are tasks of one type.
    let there = frame_dyn(converse_there(server.clone(), socket, from, permit));
    s.named(server.connection_name.clone()).on(context).spawn(there);
}

impl<K: Kind, H> HandOver<K, H> {
    pub(super) fn new(contexts: Contexts, spawn: SpawnThere<K, H>) -> io::Result<Self> {
        let driver = current_driver()?;
        let is_own = |context: &&IoExecutor| {
            driver_of_executor(*context).is_some_and(|other| Arc::ptr_eq(&other, &driver))
        };
        let own = contexts.all().iter().find(is_own).cloned();
        Ok(Self { contexts, own, spawn })
    }

    /// Returns the context for the next connection, or `None` if that is the acceptor's own.
    fn next(&self) -> Option<&IoExecutor> {
        Some(self.contexts.next()).filter(|context| self.own.as_ref() != Some(*context))
    }
}

/// Waits until the next attempt to accept, or returns an error that the listener cannot recover from.
async fn pause_after<H>(
    error: io::Error,
    server: &SharedServer<H>,
    out_of_resources: &mut bool,
) -> io::Result<()> {
    match AcceptFailure::of(&error) {
        AcceptFailure::Connection => checkpoint().await,
        AcceptFailure::Resources => {
            if !core::mem::replace(out_of_resources, true) {
                server.report(ServerReport::NoResources { error, pause: ACCEPT_PAUSE });
            }
            sleep(ACCEPT_PAUSE).await;
        }
        AcceptFailure::Listener => return Err(error),
    }
    Ok(())
}

/// The cause of an error of `accept`, which decides what the acceptor does next.
#[derive(Debug, PartialEq, Eq)]
pub enum AcceptFailure {
    /// The connection: it was broken, or refused by a firewall, before it was accepted. Others may be fine.
    Connection,
    /// A lack of descriptors or memory. It passes when connections end.
    Resources,
    /// The listener itself.
    Listener,
}

impl AcceptFailure {
    /// Returns the cause of `error`.
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::Interrupted
            | ErrorKind::TimedOut
            | ErrorKind::PermissionDenied
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown => Self::Connection,
            ErrorKind::OutOfMemory | ErrorKind::QuotaExceeded => Self::Resources,
            // Errors without a kind: too many descriptors (EMFILE, ENFILE), no buffers (ENOBUFS), and rare ones of the
            // network below. A server that retries after a pause survives all of them. Errors with these kinds
            // mean that the socket does not listen, or that its driver has ended.
            ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::NotConnected => Self::Listener,
            _ if error.raw_os_error().is_some() => Self::Resources,
            _ => Self::Listener,
        }
    }
}
