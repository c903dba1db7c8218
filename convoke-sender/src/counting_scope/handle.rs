//! The verbs of a scope, for the scope itself and for those that hold a handle to it.

use core::fmt;

use crate::Sender;
use convoke_core::raw::sync::Arc;
use convoke_core::{Env, StopReason, StopToken};

use super::name::Name;
use super::nest::Nest;
use super::shared::Shared;
use super::spawn::{NoError, NoValue, SpawnError, spawn};
use super::spawn_future::{SpawnFuture, spawn_future};
use super::state::Phase;

/// Puts work into a [`CountingScope`](super::CountingScope), from anywhere. Cheap to clone.
///
/// A handle does not keep the scope open, and nobody waits for it: it is what work holds that spawns more work beside
/// itself.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let scope = CountingScope::new();
/// let (handle, env) = (scope.handle(), Env::new());
/// let parent = just_from(move || handle.spawn(just_from(|| println!("a grandchild")), &env).unwrap());
/// scope.spawn(parent, &Env::new()).unwrap();
/// assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
/// ```
#[derive(Clone)]
pub struct ScopeHandle {
    pub(super) shared: Arc<Shared>,
}

impl ScopeHandle {
    /// Associates `sender` with the scope. It is counted from now on: until the sender that is returned is dropped, or
    /// its operation is dropped unstarted or completes. The count goes down after the receiver was completed.
    ///
    /// If the scope is closed, `sender` is dropped, and what is returned completes as stopped. A copy of the sender is
    /// counted for itself. Nothing is allocated and nothing started; the stop token stays that of the place where it is
    /// started.
    ///
    /// - *Completes with* the outcome of `sender`, unchanged; stopped if the scope was closed.
    /// - *If dropped* before it was started, `sender` is dropped, and counted no more.
    /// - *Runs on* what `sender` runs on.
    ///
    /// ```
    /// use convoke::sender::prelude::*;
    ///
    /// let scope = CountingScope::new();
    /// let nested = scope.nest(just(1));
    /// assert_eq!(scope.use_count(), 1);
    /// assert_eq!(sync_wait(nested), Outcome::Value(1));
    /// assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
    /// assert_eq!(sync_wait(scope.nest(just(2))), Outcome::Stopped);
    /// ```
    #[track_caller]
    pub fn nest<S: Sender>(&self, sender: S) -> Nest<S> {
        Nest::new(sender, Shared::enter(&self.shared, Name::here()))
    }

    /// Starts `sender` now, on this thread, in an environment made of `env`; the scope counts it until it has completed.
    /// To have it run elsewhere, say so: `scope.spawn(work.starts_on(&executor), &env)`.
    ///
    /// The work sees the executor, the frame allocator and the inherited locals of `env`. It is asked to stop when
    /// `env` is, or by [`request_stop`](ScopeHandle::request_stop). All of it lies in one allocation from the frame
    /// allocator of `env`, which is given back before the scope counts it no more.
    ///
    /// It completes with `()` or as stopped: nobody takes a value or hears of an error. If it panics, the scope's
    /// [`join`](super::CountingScope::join) completes with the panic.
    ///
    /// # Errors
    /// If the scope is closed, or the frame allocator has no memory left. Nothing has run then, and the sender is in the
    /// error. (A closed scope is an error here, where [`nest`](ScopeHandle::nest) makes it a stop: nobody would hear of
    /// the stop.)
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::sender::prelude::*;
    ///
    /// let pool = ThreadPool::new(2).unwrap();
    /// let env = Env::from(pool.executor());
    /// let scope = CountingScope::new();
    /// for number in 0..10 {
    ///     scope.spawn(schedule(&pool.executor()).then(move |()| println!("number {number}")), &env).unwrap();
    /// }
    /// assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
    /// ```
    #[track_caller]
    pub fn spawn<S>(&self, sender: S, env: &Env) -> Result<(), SpawnError<S>>
    where
        S: Sender<Value: NoValue, Error: NoError> + 'static,
    {
        spawn(&self.shared, Name::here(), sender, env)
    }

    /// Starts `sender` now, as [`spawn`](ScopeHandle::spawn) does, and returns a sender for its outcome. Any work can be
    /// spawned like this. The scope counts it until it has completed, whether the outcome was asked for or not.
    ///
    /// The work has a stop source of its own besides: it is asked to stop when what is returned is dropped or stopped.
    ///
    /// # Errors
    /// As for [`spawn`](ScopeHandle::spawn).
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::sender::prelude::*;
    ///
    /// let pool = ThreadPool::new(2).unwrap();
    /// let scope = CountingScope::new();
    /// let answer = schedule(&pool.executor()).then(|()| 6 * 7);
    /// let answer = scope.spawn_future(answer, &Env::new()).unwrap();
    /// // … something else meanwhile …
    /// assert_eq!(sync_wait(when_all((answer, scope.join()))), Outcome::Value((42, ())));
    /// ```
    #[track_caller]
    pub fn spawn_future<S>(
        &self,
        sender: S,
        env: &Env,
    ) -> Result<SpawnFuture<S::Value, S::Error>, SpawnError<S>>
    where
        S: Sender<Value: Send, Error: Send> + 'static,
    {
        spawn_future(&self.shared, Name::here(), sender, env)
    }

    /// The same three verbs for work that has a name. Without one, messages say where the work was put into the scope.
    ///
    /// ```should_panic
    /// use convoke::prelude::*;
    ///
    /// let scope = CountingScope::new();
    /// scope.named("reader").spawn(never::<()>(), &Env::new()).unwrap();
    /// // dropped with 1 piece of work still in it: `reader`
    /// ```
    pub fn named(&self, name: &'static str) -> Named<'_> {
        Named { shared: &self.shared, name: Name::Given(name) }
    }

    /// Asks all work that was spawned, and all that will be, to stop. The scope stays open. Says whether this was the
    /// first request.
    ///
    /// ```
    /// use convoke::sender::prelude::*;
    ///
    /// let scope = CountingScope::new();
    /// scope.spawn(never::<()>(), &Env::new()).unwrap();
    /// scope.request_stop(StopReason::Shutdown);
    /// assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
    /// ```
    pub fn request_stop(&self, reason: StopReason) -> bool {
        self.shared.stop.request_stop(reason)
    }

    /// The token that [`request_stop`](ScopeHandle::request_stop) stops.
    pub fn stop_token(&self) -> StopToken {
        self.shared.stop.token()
    }

    /// Whether a join was started and nobody is left. Once true it stays true; false may be out of date.
    pub fn joined(&self) -> bool {
        self.shared.state().phase() == Phase::Joined
    }

    /// Whether a join was started, or the scope dropped: nothing enters any more. Once true it stays true; false may be
    /// out of date.
    pub fn join_started(&self) -> bool {
        self.shared.state().phase() != Phase::Open
    }

    /// How many are in the scope. May be out of date.
    pub fn use_count(&self) -> usize {
        self.shared.state().count()
    }
}

impl fmt::Debug for ScopeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state();
        f.debug_struct("ScopeHandle")
            .field("phase", &state.phase())
            .field("use_count", &state.count())
            .finish_non_exhaustive()
    }
}

/// A scope, and a name for what is put into it. See [`ScopeHandle::named`].
pub struct Named<'a> {
    shared: &'a Arc<Shared>,
    name: Name,
}

impl Named<'_> {
    /// As [`ScopeHandle::nest`].
    pub fn nest<S: Sender>(self, sender: S) -> Nest<S> {
        Nest::new(sender, Shared::enter(self.shared, self.name))
    }

    /// As [`ScopeHandle::spawn`].
    ///
    /// # Errors
    /// As there.
    pub fn spawn<S>(self, sender: S, env: &Env) -> Result<(), SpawnError<S>>
    where
        S: Sender<Value: NoValue, Error: NoError> + 'static,
    {
        spawn(self.shared, self.name, sender, env)
    }

    /// As [`ScopeHandle::spawn_future`].
    ///
    /// # Errors
    /// As there.
    pub fn spawn_future<S>(
        self,
        sender: S,
        env: &Env,
    ) -> Result<SpawnFuture<S::Value, S::Error>, SpawnError<S>>
    where
        S: Sender<Value: Send, Error: Send> + 'static,
    {
        spawn_future(self.shared, self.name, sender, env)
    }
}

impl fmt::Debug for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Named({})", self.name)
    }
}
