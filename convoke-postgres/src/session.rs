//! A session: the client half of a connection, whose statements can be stopped.
//!
//! The state of a session is known if every statement that was sent through it has been answered, and its last answer was no
//! error: then `status` is that of the last `ReadyForQuery`. A statement whose future was dropped, one that failed (its
//! `ReadyForQuery` may still be on the way), and use of the client by itself leave it `uncertain`, until a
//! statement that was sent later is answered.

use core::fmt;
use core::future::{Future, IntoFuture, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{Frame, StopWatch, budget};
use convoke_exec::time::sleep;
use convoke_sync::{Event, OwnedPermit, oneshot};
use convoke_task::{checkpoint, shield};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Statement};

use crate::connecting;
use crate::error::Error;
use crate::socket::Server;
use crate::status::{State, Status};
use crate::surroundings::Surroundings;

/// Prepared statements that a connection remembers, at most: see
/// [`prepare_cached`](crate::Connection::prepare_cached).
pub const STATEMENTS: usize = 128;

/// The client half of a connection.
pub(crate) struct Session {
    client: Client,
    status: Arc<Status>,
    server: Server,
    /// Cuts the connection when it is set.
    cut: Arc<Event>,
    /// Set while it is not known what the server does, or has done.
    uncertain: AtomicBool,
    /// Set if a statement's future was dropped: the server may still work on it.
    is_abandoned: AtomicBool,
    /// Statements that were prepared before; the one that was used last is the last.
    prepared: Mutex<VecDeque<(String, Statement)>>,
    /// The permit of the pool, while the session is lent.
    pub(crate) slot: Arc<Slot>,
}

/// Place of a connection's permit: shared by the session and the task of the connection, so that it is released when both have ended.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Option<OwnedPermit>>);

impl Slot {
    pub(crate) fn new(permit: OwnedPermit) -> Self {
        Self(Mutex::new(Some(permit)))
    }

    /// Stores a permit, or none; returns the one before.
    pub(crate) fn replace(&self, permit: Option<OwnedPermit>) -> Option<OwnedPermit> {
        core::mem::replace(&mut *lock(&self.0), permit)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    pub(crate) fn new(
        client: Client,
        status: Arc<Status>,
        server: Server,
        cut: Arc<Event>,
        slot: Arc<Slot>,
    ) -> Self {
        let (uncertain, is_abandoned) = (AtomicBool::new(false), AtomicBool::new(false));
        let prepared = Mutex::default();
        Self { client, status, server, cut, uncertain, is_abandoned, prepared, slot }
    }

    /// Returns a statement that was prepared before.
    pub(crate) fn prepared(&self, sql: &str) -> Option<Statement> {
        let mut prepared = lock(&self.prepared);
        let place = prepared.iter().rposition(|(text, _)| text == sql)?;
        let found = prepared.remove(place)?;
        let statement = found.1.clone();
        prepared.push_back(found);
        Some(statement)
    }

    /// Remembers a statement, and forgets the one that was not used for longest if there are too many.
    pub(crate) fn remember(&self, sql: &str, statement: &Statement) {
        let mut prepared = lock(&self.prepared);
        prepared.push_back((sql.to_owned(), statement.clone()));
        let forgotten = if prepared.len() > STATEMENTS { prepared.pop_front() } else { None };
        drop(prepared);
        // Sends a message that closes it.
        drop(forgotten);
    }

    /// Returns the client, for calls that are awaited by [`call`](Session::call).
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the client for calls that nobody watches.
    pub(crate) fn client_unwatched(&self) -> &Client {
        self.uncertain.store(true, Ordering::Relaxed);
        &self.client
    }

    /// Returns the state, if it is known.
    pub(crate) fn state(&self) -> Option<State> {
        (!self.uncertain.load(Ordering::Relaxed)).then(|| self.status.get())
    }

    /// Returns true if the server may still work on a statement whose future was dropped.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    /// Cuts the connection. Statements that wait fail.
    pub(crate) fn cut(&self) {
        self.cut.set();
    }

    /// Awaits the answer to a statement. A stop cancels the statement on the server, and its end is awaited: in
    /// time, or the connection is cut.
    pub(crate) async fn call<T>(
        &self,
        pool: &Arc<Surroundings>,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        // Nothing is sent if a stop was requested before.
        unless_stopped().await;
        let under_way = UnderWay(Some(self));
        let mut statement = pin!(shield(statement));
        let answered = UntilAnswered { statement: statement.as_mut(), watch: StopWatch::new() };
        if let Some(answer) = answered.await {
            return under_way.end(answer);
        }
        let answer = shield(self.cancel_and_await(pool, statement)).await;
        let ended = under_way.end(answer);
        if ended.as_ref().is_err_and(|error| error.is_cancelled() || self.cut.is_set()) {
            // Ends here, for the stop that has cancelled the statement or cut the connection.
            checkpoint().await;
        }
        ended
    }

    /// Asks the server to cancel `statement`, and awaits its end.
    async fn cancel_and_await<T>(
        &self,
        pool: &Arc<Surroundings>,
        mut statement: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        let mut cancelled = pin!(self.cancel(pool));
        let mut is_cancelled = false;
        let mut answer = None;
        self.or_cut(pool.options.cancel_time, |cx| {
            if answer.is_none()
                && let Poll::Ready(answered) = statement.as_mut().poll(cx)
            {
                answer = Some(answered);
            }
            // Awaited also if the statement has ended: a request on its way would hit the next one.
            is_cancelled = is_cancelled || cancelled.as_mut().poll(cx).is_ready();
            if is_cancelled && answer.is_some() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        match answer {
            Some(answer) => answer,
            // The connection was cut, so it ends.
            None => statement.await,
        }
    }

    /// Asks the server to cancel what this session does. Completes when the server has acted on it, or cannot be reached.
    pub(crate) async fn cancel(&self, pool: &Arc<Surroundings>) {
        let (done, mut answer) = oneshot::channel::<()>();
        let (shared, server, token) = (pool.clone(), self.server.clone(), self.client.cancel_token());
        // By a child of the pool: this task may run where there is no I/O.
        let child = async move {
            let time = shared.options.cancel_time;
            let cancels = connecting::cancel(&shared.options, &server, &token);
            // A server that cannot be reached does not answer the statement either, and the connection is cut.
            let _ = shield(convoke_task::timeout(time, cancels)).await;
            let _ = done.send(());
        };
        if pool.scope.named("postgres cancel").try_spawn(child).is_ok() {
            let _ = answer.recv().await;
        }
    }

    /// Polls until it is ready, or cuts the connection when the time is over.
    pub(crate) async fn or_cut<T>(
        &self,
        time: Duration,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        let mut time_is_over = pin!(sleep(time).into_future());
        poll_fn(|cx| {
            if let Poll::Ready(value) = poll(cx) {
                return Poll::Ready(Some(value));
            }
            if time_is_over.as_mut().poll(cx).is_ready() {
                self.cut();
                return Poll::Ready(None);
            }
            Poll::Pending
        })
        .await
    }

    /// Ends what the session does, and its transaction. Returns true if it is clean then; else it is cut.
    pub(crate) async fn reset(&self, pool: &Arc<Surroundings>) -> bool {
        if self.is_abandoned() {
            self.cancel(pool).await;
        }
        // A second time: if the request to cancel comes late, it hits the first.
        for _ in 0..2 {
            if self.state() == Some(State::Idle) {
                return true;
            }
            let mut rollback = pin!(self.client.batch_execute("ROLLBACK"));
            let rolled_back = self.or_cut(pool.options.cancel_time, |cx| rollback.as_mut().poll(cx)).await;
            match rolled_back {
                Some(Ok(())) => self.is_known(),
                Some(Err(error)) if error.code() == Some(&SqlState::QUERY_CANCELED) => {}
                Some(Err(_)) | None => break,
            }
        }
        let is_clean = self.state() == Some(State::Idle);
        if !is_clean {
            self.cut();
        }
        is_clean
    }

    /// Notes that a statement was answered that was sent after all others.
    fn is_known(&self) {
        self.uncertain.store(false, Ordering::Relaxed);
        self.is_abandoned.store(false, Ordering::Relaxed);
    }

    /// Finds out the state, if it is not known.
    pub(crate) async fn settle(&self, pool: &Arc<Surroundings>) -> Result<State, Error> {
        if let Some(state) = self.state() {
            return Ok(state);
        }
        if self.is_abandoned() {
            self.cancel(pool).await;
        }
        self.call(pool, self.client.batch_execute("")).await?;
        self.is_known();
        Ok(self.status.get())
    }
}

/// A statement that is under way. Dropped before its end, it leaves the session uncertain.
struct UnderWay<'a>(Option<&'a Session>);

impl UnderWay<'_> {
    fn end<T>(mut self, answer: Result<T, tokio_postgres::Error>) -> Result<T, Error> {
        if let Some(session) = self.0.take()
            && answer.is_err()
        {
            session.uncertain.store(true, Ordering::Relaxed);
        }
        Ok(answer?)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            session.uncertain.store(true, Ordering::Relaxed);
            session.is_abandoned.store(true, Ordering::Relaxed);
        }
    }
}

/// Stops here if a stop was requested, and lets others run if the task has had its turn.
async fn unless_stopped() {
    poll_fn(|cx| {
        let is_stopped = Frame::current(|frame| frame.is_some_and(Frame::honour_stop));
        if is_stopped || !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        budget::spend();
        Poll::Ready(())
    })
    .await;
}

/// Waits until a statement is answered (`Some`), or a stop is requested (`None`).
struct UntilAnswered<'a, F> {
    statement: Pin<&'a mut F>,
    watch: StopWatch,
}

impl<F: Future> Future for UntilAnswered<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Poll::Ready(answer) = this.statement.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        Frame::current(|frame| match frame {
            Some(frame) if frame.is_asked_to_stop() => Poll::Ready(None),
            Some(frame) => {
                this.watch.watch(frame, cx);
                Poll::Pending
            }
            None => Poll::Pending,
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("state", &self.state()).finish_non_exhaustive()
    }
}
