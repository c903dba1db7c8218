//! State of a pool: which connections there are, and which of them are free.
//!
//! 1. A connection holds a permit of `bound` from before it is established until it has ended or is free: at
//!    most as many exist. A task that waits for one waits for a permit.
//! 2. A connection is *lent* (a `Session` in somebody's hands), *free* (in the list), or *being established*, by the child
//!    that will drive it.
//! 3. A session returns to the list only if its server has said that no transaction is open.

use std::sync::Arc;
use std::time::Instant;

use convoke_core::raw::sync::Mutex;
use convoke_exec::time::now;
use convoke_sync::{Event, OwnedPermit, Semaphore, oneshot};
use convoke_task::{Scope, shield, timeout};

use crate::connecting::{self, Connected};
use crate::driver::{Wiring, drive};
use crate::error::Error;
use crate::options::PoolOptions;
use crate::session::{Session, Slot};
use crate::surroundings::Surroundings;

/// State of a pool.
pub(crate) struct PoolState {
    pub(crate) surroundings: Arc<Surroundings>,
    bound: Arc<Semaphore>,
    free: Mutex<Free>,
    /// Set when the last connection has ended, after the pool was closed.
    ended: Event,
    /// Set when the connections that are left are cut.
    cut: Event,
}

#[derive(Default)]
struct Free {
    /// The connections that nobody uses; the one that was used last is the last.
    sessions: Vec<(Session, Instant)>,
    /// Connections that exist or are being established.
    alive: usize,
    is_closed: bool,
}

impl PoolState {
    pub(crate) fn new(options: PoolOptions, scope: Scope<()>) -> Self {
        let bound = Arc::new(Semaphore::new(options.connections));
        let surroundings = Arc::new(Surroundings { options, scope });
        Self { surroundings, bound, free: Mutex::default(), ended: Event::new(), cut: Event::new() }
    }

    /// Returns the number of connections that exist or are being established, and of those that nobody uses.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let free = self.lock();
        (free.alive, free.sessions.len())
    }

    pub(crate) async fn lease(self: &Arc<Self>) -> Result<Session, Error> {
        let PoolOptions { acquire_time, connections, .. } = self.surroundings.options;
        let waited = timeout(acquire_time, self.bound.acquire_owned()).await;
        let Ok(permit) = waited else {
            return Err(Error::NoneFree { connections, waited: acquire_time });
        };
        match self.take_free()? {
            Some(session) => {
                session.slot.replace(Some(permit));
                Ok(session)
            }
            None => self.establish(permit, Wiring::None).await,
        }
    }

    /// Establishes a connection that tells of notifications.
    pub(crate) async fn lease_listening(self: &Arc<Self>, wiring: Wiring) -> Result<Session, Error> {
        let permit = self.bound.acquire_owned().await;
        // A free connection would be one too many.
        drop(self.take_free()?);
        self.establish(permit, wiring).await
    }

    fn lock(&self) -> convoke_core::raw::sync::MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes a free connection that is still alive.
    fn take_free(&self) -> Result<Option<Session>, Error> {
        loop {
            let mut free = self.lock();
            if free.is_closed {
                return Err(Error::Closed);
            }
            let Some((session, since)) = free.sessions.pop() else { return Ok(None) };
            drop(free);
            let is_fresh = now().saturating_duration_since(since) < self.surroundings.options.idle_time;
            if is_fresh && !session.client().is_closed() {
                return Ok(Some(session));
            }
            // Dropped without the lock: it says goodbye.
        }
    }

    /// Starts a child that establishes a connection, and drives it until it ends.
    async fn establish(self: &Arc<Self>, permit: OwnedPermit, wiring: Wiring) -> Result<Session, Error> {
        let (reply, mut answer) = oneshot::channel();
        let shared = self.clone();
        self.lock().alive += 1;
        let alive = Alive(self.clone());
        let child = async move {
            let _alive = alive;
            // A pool that is asked to stop still serves the clean-up of its users.
            shield(shared.be_connection(permit, wiring, reply)).await;
        };
        if self.surroundings.scope.named("postgres connection").try_spawn(child).is_err() {
            return Err(Error::Closed);
        }
        match answer.recv().await {
            Some(Ok(mut offer)) => offer.session.take().ok_or(Error::Closed),
            Some(Err(error)) => Err(error),
            None => Err(Error::Closed),
        }
    }

    /// Is the task of one connection.
    async fn be_connection(
        self: Arc<Self>,
        permit: OwnedPermit,
        wiring: Wiring,
        reply: oneshot::Sender<Result<Offer, Error>>,
    ) {
        let time = self.surroundings.options.connect_time;
        let Connected { client, wire, status, server } =
            match timeout(time, connecting::connect(&self.surroundings.options)).await {
                Ok(Ok(connected)) => connected,
                Ok(Err(error)) => return drop(reply.send(Err(error))),
                Err(elapsed) => return drop(reply.send(Err(Error::Connect(elapsed.into())))),
            };
        let cut = Arc::new(Event::new());
        // Kept until the connection has ended: who drops the session does not make room for another yet.
        let slot = Arc::new(Slot::new(permit));
        let session = Session::new(client, status, server, cut.clone(), slot.clone());
        let giver = (!wiring.is_listener()).then(|| self.clone());
        drop(reply.send(Ok(Offer { session: Some(session), giver })));
        drive(wire, wiring, &cut, &self.cut).await;
        drop(slot);
    }

    /// Returns a lent connection: it is free, unless the pool is closed.
    pub(crate) fn give_back(&self, session: Session) {
        let permit = session.slot.replace(None);
        let mut free = self.lock();
        if !free.is_closed {
            free.sessions.push((session, now()));
        }
        drop(free);
        drop(permit);
    }

    /// Ends the connections, and waits for their end.
    pub(crate) async fn close(&self) {
        let (left, sessions) = {
            let mut free = self.lock();
            free.is_closed = true;
            (free.alive, core::mem::take(&mut free.sessions))
        };
        // Each says goodbye.
        drop(sessions);
        if left > 0 && timeout(self.surroundings.options.cancel_time, self.ended.wait()).await.is_err() {
            self.cut.set();
        }
    }
}

/// A new connection on its way to the task that asked for it. If that was stopped meanwhile, the connection is free.
struct Offer {
    session: Option<Session>,
    /// `None` for a connection that is good for this one task only.
    giver: Option<Arc<PoolState>>,
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let (Some(session), Some(giver)) = (self.session.take(), &self.giver) {
            giver.give_back(session);
        }
    }
}

/// Counts a connection.
struct Alive(Arc<PoolState>);

impl Drop for Alive {
    fn drop(&mut self) {
        let mut free = self.0.lock();
        free.alive -= 1;
        let was_last = free.is_closed && free.alive == 0;
        drop(free);
        if was_last {
            self.0.ended.set();
        }
    }
}
