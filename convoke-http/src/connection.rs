//! The connection that a request came by, for everything below its handler.

use core::fmt;
use std::sync::{Arc, PoisonError};

use convoke_core::StopToken;
use convoke_core::env::Local;
use convoke_core::raw::sync::Mutex;
use convoke_net::net::Address;
use convoke_task::policy::Supervisor;
use convoke_task::{Scope, current};

use crate::drain::Drain;
use crate::report::AnyError;

/// The key of the connection in the environment of its requests.
pub(crate) static CONNECTION: Local<Connection> = Local::inherited("HTTP connection");

/// A connection of a client, as the handlers of its requests see it. Clones are the same connection.
///
/// ```
/// use convoke_http::{Connection, RequestBody};
/// use http::{Request, Response};
///
/// async fn who_are_you(_: Request<RequestBody>) -> Result<Response<String>, std::io::Error> {
///     let peer = Connection::current().map(|connection| connection.peer().to_string());
///     Ok(Response::new(peer.unwrap_or_default()))
/// }
/// ```
#[derive(Clone)]
pub struct Connection {
    shared: Arc<SharedConnection>,
}

struct SharedConnection {
    peer: Address,
    is_encrypted: bool,
    /// The stop of the server, from the moment when it is announced.
    drain: StopToken,
    upgrades: Supervisor<(), AnyError>,
    /// The scope of the requests. Set before the first one: it lies inside the tasks that have the connection in their
    /// environment.
    requests: Mutex<Option<Scope<()>>>,
}

impl Connection {
    pub(crate) fn new(
        peer: Address,
        is_encrypted: bool,
        drain: StopToken,
        upgrades: Supervisor<(), AnyError>,
    ) -> Self {
        Self {
            shared: Arc::new(SharedConnection {
                peer,
                is_encrypted,
                drain,
                upgrades,
                requests: Mutex::new(None),
            }),
        }
    }

    /// Returns the connection of the request that the current task works on; `None` outside a request.
    pub fn current() -> Option<Self> {
        current::local(&CONNECTION)
    }

    /// Returns the address of the client.
    pub fn peer(&self) -> &Address {
        &self.shared.peer
    }

    /// Returns true if the connection is by TLS.
    pub fn is_encrypted(&self) -> bool {
        self.shared.is_encrypted
    }

    /// Returns the drain of the server, to ask whether it has begun or to wait for it.
    pub fn drain(&self) -> Drain {
        Drain::new(self.shared.drain.clone())
    }

    /// Sets the scope of the requests. It must be unset when the scope ends: the scope owns its environment, which owns
    /// the connection.
    pub(crate) fn set_requests(&self, scope: Option<Scope<()>>) {
        let before = core::mem::replace(
            &mut *self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner),
            scope,
        );
        drop(before);
    }

    /// Returns the scope of the requests.
    pub(crate) fn requests(&self) -> Option<Scope<()>> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the entrance for tasks that hear a stop of the server at once.
    pub(crate) fn upgrades(&self) -> &Supervisor<(), AnyError> {
        &self.shared.upgrades
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("peer", &self.shared.peer)
            .field("is_encrypted", &self.shared.is_encrypted)
            .finish_non_exhaustive()
    }
}
