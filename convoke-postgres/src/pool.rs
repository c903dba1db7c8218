//! The pool: which connections there are, and who has one.
//!
//! 1. A connection holds a permit of `bound` from before it is established until it has ended or is free: at
//!    most as many exist. A task that waits for one waits for a permit.
//! 2. A connection is *lent* (a `Session` in somebody's hands), *free* (in the list), or *being established*, by the child
//!    that will drive it.
//! 3. A session returns to the list only if its server has said that no transaction is open.

use core::fmt;
use core::future::Future;
use std::sync::Arc;
use std::time::Instant;

use convoke_core::BodyOutput;
use convoke_core::raw::sync::Mutex;
use convoke_exec::time::now;
use convoke_sync::{Event, OwnedPermit, Semaphore, oneshot};
use convoke_task::cleanup::Exit;
use convoke_task::{Scope, ensure, scope, shield, timeout};

use crate::connecting::{self, Connected};
use crate::connection::Connection;
use crate::driver::{Wiring, drive};
use crate::error::Error;
use crate::options::PoolOptions;
use crate::session::{Session, Slot};
use crate::transaction::{Begin, Transaction};

/// Pool of connections to PostgreSQL: [`PoolOptions::run`] opens one. A clone is the same pool.
///
/// Use [`transaction`](Pool::transaction) for what belongs together, and `using(pool.get().await?, …)` for single
/// statements.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) options: PoolOptions,
    pub(crate) scope: Scope<()>,
    bound: Arc<Semaphore>,
    free: Mutex<Free>,
    /// Set when the last connection has ended, after the pool was closed.
    ended: Event,
    /// Set when the connections that are left are cut.
    pub(crate) cut: Event,
}

#[derive(Default)]
struct Free {
    /// The connections that nobody uses; the one that was used last is the last.
    sessions: Vec<(Session, Instant)>,
    /// Connections that exist or are being established.
    alive: usize,
    is_closed: bool,
}

/// Number of connections of a [`Pool`]: see [`Pool::status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStatus {
    /// Connections that exist or are being established.
    pub connections: usize,
    /// Connections that nobody uses.
    pub free: usize,
}

/// Runs `body` with a pool.
pub(crate) async fn run<B, F>(options: PoolOptions, body: B) -> F::Output
where
    B: FnOnce(Pool) -> F,
    F: Future<Output: BodyOutput>,
{
    let mut output = None;
    let returned = &mut output;
    scope(async move |s: Scope<()>| {
        let bound = Arc::new(Semaphore::new(options.connections));
        let shared = Shared {
            options,
            scope: s,
            bound,
            free: Mutex::default(),
            ended: Event::new(),
            cut: Event::new(),
        };
        let pool = Pool { shared: Arc::new(shared) };
        let closed = pool.clone();
        let ended = ensure(async move |_: Exit| closed.shared.close().await, body(pool)).await;
        *returned = Some(ended);
    })
    .await;
    match output {
        Some(output) => output,
        None => unreachable!("a scope that returns has run its body to the end"),
    }
}

impl Pool {
    /// Lends a connection: a free one, or a new one. `using` returns it.
    ///
    /// - *Completes with* the connection; with [`Error::NoneFree`] if the pool is busy for the acquire time; with
    ///   the error of a connection that could not be established.
    /// - *If dropped*, nothing is lost: a connection that is being established becomes free.
    /// - *Runs on* the task. The connection is established by a task of the pool.
    ///
    /// ```no_run
    /// use convoke::prelude::*;
    /// use convoke_postgres::{Error, Pool};
    ///
    /// async fn orders(pool: &Pool) -> Result<i64, Error> {
    ///     using(pool.get().await?, async |connection| {
    ///         Ok(connection.query_one("SELECT count(*) FROM orders", &[]).await?.get(0))
    ///     })
    ///     .await
    /// }
    /// ```
    pub async fn get(&self) -> Result<Connection, Error> {
        Ok(Connection::new(self.shared.clone(), self.lease().await?))
    }

    /// Begins a transaction on a connection of the pool. `using` commits it, or rolls it back.
    ///
    /// Use [`transaction`](Pool::transaction) if one closure is the whole transaction.
    ///
    /// - *Completes with* the transaction; or with an error as [`get`](Pool::get), or of the `BEGIN`.
    /// - *If dropped*, the connection is closed; the server rolls back.
    /// - *Runs on* the task.
    ///
    /// ```no_run
    /// use convoke::prelude::*;
    /// use convoke_postgres::{Error, Pool};
    ///
    /// async fn ship(pool: &Pool, order: i64) -> Result<(), Error> {
    ///     using(pool.begin().await?, async |tx| {
    ///         tx.execute("UPDATE orders SET shipped = now() WHERE id = $1", &[&order]).await?;
    ///         Ok(())
    ///     })
    ///     .await
    /// }
    /// ```
    pub async fn begin(&self) -> Result<Transaction, Error> {
        self.begin_with(Begin::new()).await
    }

    /// Begins a transaction as `how` says: its isolation level, whether it reads only. Apart from that it works as
    /// [`begin`](Pool::begin).
    pub async fn begin_with(&self, how: Begin) -> Result<Transaction, Error> {
        Transaction::begin(self.get().await?, how).await
    }

    /// Runs `body` in a transaction: committed if it returns `Ok`, rolled back if it fails, is stopped or panics. Either is
    /// awaited.
    ///
    /// A stop cancels the statement that the server works on. The connection returns to the pool when its server has
    /// said that no transaction is open; else it is cut.
    ///
    /// - *Completes with* what the body returns; with [`Error::RolledBack`] if it returned `Ok` although a statement had failed;
    ///   with the error of the commit; with an error as [`get`](Pool::get). Stopped, if the body is.
    /// - *If dropped*, the connection is closed; the server rolls back.
    /// - *Runs on* the task.
    /// - *Panics* with the panic of the body; and outside a task.
    ///
    /// ```no_run
    /// use convoke_postgres::{Error, Pool};
    ///
    /// async fn transfer(pool: &Pool, from: i32, to: i32, sum: i64) -> Result<(), Error> {
    ///     pool.transaction(async |tx| {
    ///         let change = "UPDATE accounts SET balance = balance + $2 WHERE id = $1";
    ///         tx.execute(change, &[&from, &-sum]).await?;
    ///         tx.execute(change, &[&to, &sum]).await?;
    ///         Ok(())
    ///     })
    ///     .await
    /// }
    /// ```
    pub async fn transaction<B, F, T, E>(&self, body: B) -> Result<T, E>
    where
        B: FnOnce(convoke_task::Lent<Transaction>) -> F,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let transaction = self.begin().await?;
        convoke_task::using(transaction, body).await
    }

    /// Returns the number of connections.
    pub fn status(&self) -> PoolStatus {
        let free = self.shared.lock();
        PoolStatus { connections: free.alive, free: free.sessions.len() }
    }

    pub(crate) async fn lease(&self) -> Result<Session, Error> {
        let PoolOptions { acquire_time, connections, .. } = self.shared.options;
        let waited = timeout(acquire_time, self.shared.bound.acquire_owned()).await;
        let Ok(permit) = waited else {
            return Err(Error::NoneFree { connections, waited: acquire_time });
        };
        match self.shared.take_free()? {
            Some(session) => {
                session.slot.replace(Some(permit));
                Ok(session)
            }
            None => Shared::establish(&self.shared, permit, Wiring::None).await,
        }
    }

    /// Establishes a connection that tells of notifications.
    pub(crate) async fn lease_listening(&self, wiring: Wiring) -> Result<Session, Error> {
        let permit = self.shared.bound.acquire_owned().await;
        // A free connection would be one too many.
        drop(self.shared.take_free()?);
        Shared::establish(&self.shared, permit, wiring).await
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Shared {
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
            let is_fresh = now().saturating_duration_since(since) < self.options.idle_time;
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
        if self.scope.named("postgres connection").try_spawn(child).is_err() {
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
        let time = self.options.connect_time;
        let Connected { client, wire, status, server } =
            match timeout(time, connecting::connect(&self.options)).await {
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
    async fn close(&self) {
        let (left, sessions) = {
            let mut free = self.lock();
            free.is_closed = true;
            (free.alive, core::mem::take(&mut free.sessions))
        };
        // Each says goodbye.
        drop(sessions);
        if left > 0 && timeout(self.options.cancel_time, self.ended.wait()).await.is_err() {
            self.cut.set();
        }
    }
}

/// A new connection on its way to the task that asked for it. If that was stopped meanwhile, the connection is free.
struct Offer {
    session: Option<Session>,
    /// `None` for a connection that is good for this one task only.
    giver: Option<Arc<Shared>>,
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let (Some(session), Some(giver)) = (self.session.take(), &self.giver) {
            giver.give_back(session);
        }
    }
}

/// Counts a connection.
struct Alive(Arc<Shared>);

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

impl PoolStatus {
    /// Returns the number of connections that are lent or being established.
    pub fn in_use(&self) -> usize {
        self.connections.saturating_sub(self.free)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("status", &self.status()).finish_non_exhaustive()
    }
}
