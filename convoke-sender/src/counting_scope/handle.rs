//! The operations of a scope, for the scope itself and for the holders of a handle.

use core::fmt;

use crate::Sender;
use convoke_core::raw::FrameArc;
use convoke_core::{Env, StopReason, StopToken};

use super::shared::{Membership, SharedScope};
use super::state::Phase;
use crate::async_scope::{
    AsyncScope, Nest, NoError, NoValue, ScopeSpawnError, SpawnFuture, WorkName, nest_named,
    spawn_future_named, spawn_named,
};

/// A handle that adds work to a [`CountingScope`](super::CountingScope), from anywhere. Cheap to clone.
///
/// A handle does not keep the scope open, and the scope does not wait for it. Work that spawns more work into
/// its own scope holds one.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let scope = CountingScope::new();
/// let (handle, env) = (scope.handle(), Env::new());
/// let grandchild = just_from(|| println!("a grandchild"));
/// let parent = just_from(move || handle.spawn(grandchild, &env).unwrap());
/// scope.spawn(parent, &Env::new()).unwrap();
/// assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
/// ```
#[derive(Clone)]
pub struct ScopeHandle {
    pub(super) shared: FrameArc<SharedScope>,
}

impl ScopeHandle {
    /// Associates `sender` with the scope and returns it as a sender that the scope counts, from now on:
    /// until that sender is dropped, or its operation is dropped unstarted or completes. The count goes down
    /// after the receiver was completed.
    ///
    /// If the scope is closed, `sender` is dropped, and the returned sender completes as stopped. A clone of
    /// the returned sender is counted separately. Nothing is allocated and nothing started; the stop token is
    /// that of the environment in which it is started.
    ///
    /// - *Completes with* the outcome of `sender`, unchanged; stopped if the scope was closed.
    /// - *If dropped* before it starts, `sender` is dropped, and no longer counted.
    /// - *Runs on* the executors of `sender`.
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
    pub fn nest<S: Sender>(&self, sender: S) -> Nest<S, Membership> {
        nest_named(WorkName::here(), sender, self)
    }

    /// Starts `sender` now, on this thread, in an environment made from `env`; the scope counts it until it
    /// has completed. To run it on an executor: `scope.spawn(work.starts_on(&executor), &env)`.
    ///
    /// The work sees the executor and the inherited locals of `env`; without one (`None`), those of [`Env::new`].
    /// It is asked to stop when `env` is, or by [`request_stop`](ScopeHandle::request_stop). It uses one
    /// allocation, which is freed before the scope stops counting it: from the frame allocator of `env`, if that
    /// names one; else from that of the sender ([`Sender::allocator`]); else from the default.
    ///
    /// The work completes with `()` or as stopped: there is no receiver for a value or an error. Use
    /// [`spawn_future`](ScopeHandle::spawn_future) to get an outcome. If the work panics, the scope's
    /// [`join`](super::CountingScope::join) completes with the panic.
    ///
    /// # Errors
    /// Fails if the scope is closed, or if the frame allocator has no memory left. Nothing has run then, and
    /// the error contains the sender. (A closed scope is an error here, while [`nest`](ScopeHandle::nest)
    /// completes as stopped, because here no receiver would see the stop.)
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::sender::prelude::*;
    ///
    /// let pool = ThreadPool::new(2).unwrap();
    /// let env = Env::from(pool.executor());
    /// let scope = CountingScope::new();
    /// for number in 0..10 {
    ///     let work = schedule(&pool.executor()).then(move |()| println!("{number}"));
    ///     scope.spawn(work, &env).unwrap();
    /// }
    /// assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
    /// ```
    #[track_caller]
    pub fn spawn<'e, S>(&self, sender: S, env: impl Into<Option<&'e Env>>) -> Result<(), ScopeSpawnError<S>>
    where
        S: Sender<Value: NoValue, Error: NoError> + 'static,
    {
        spawn_named(WorkName::here(), sender, self, env.into())
    }

    /// Starts `sender` now, as [`spawn`](ScopeHandle::spawn) does, and returns a sender of its outcome. Any
    /// work can be spawned like this. The scope counts the work until it has completed, whether its outcome
    /// is used or not.
    ///
    /// In addition the work has its own stop source: it is asked to stop when the returned sender is dropped
    /// or stopped.
    ///
    /// # Errors
    /// Fails if the scope is closed, or if the frame allocator has no memory left, as
    /// [`spawn`](ScopeHandle::spawn) does.
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
    /// let both = when_all((answer, scope.join()));
    /// assert_eq!(sync_wait(both), Outcome::Value((42, ())));
    /// ```
    #[track_caller]
    pub fn spawn_future<'e, S>(
        &self,
        sender: S,
        env: impl Into<Option<&'e Env>>,
    ) -> Result<SpawnFuture<S::Value, S::Error>, ScopeSpawnError<S>>
    where
        S: Sender<Value: Send, Error: Send> + 'static,
    {
        spawn_future_named(WorkName::here(), sender, self, env.into())
    }

    /// Names the work that is added through the returned value. Without a name, messages show the source
    /// location where the work was added to the scope.
    ///
    /// ```should_panic
    /// use convoke::sender::prelude::*;
    ///
    /// let scope = CountingScope::new();
    /// scope.named("reader").spawn(never::<()>(), &Env::new()).unwrap();
    /// // dropped with 1 piece of work still in it: `reader`
    /// ```
    pub fn named(&self, name: &'static str) -> Named<'_> {
        Named { scope: self, name: WorkName::Given(name) }
    }

    /// Asks all work that was spawned, and all that will be, to stop. The scope stays open. Returns true if
    /// this was the first request.
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

    /// Returns the token that [`request_stop`](ScopeHandle::request_stop) stops.
    pub fn stop_token(&self) -> StopToken {
        self.shared.stop.token()
    }

    /// Returns true if a join was started and no work is left. Once true it stays true; false may be out of
    /// date.
    pub fn joined(&self) -> bool {
        self.shared.state().phase() == Phase::Joined
    }

    /// Returns true if a join was started, or the scope was dropped: no work can be added any more. Once true
    /// it stays true; false may be out of date.
    pub fn join_started(&self) -> bool {
        self.shared.state().phase() != Phase::Open
    }

    /// Returns the number of senders and pieces of work that the scope counts. May be out of date.
    pub fn use_count(&self) -> usize {
        self.shared.state().count()
    }
}

impl AsyncScope for ScopeHandle {
    type Association = Membership;

    fn associate(&self, name: WorkName) -> Option<Membership> {
        SharedScope::enter(&self.shared, name)
    }

    fn stop_token(&self) -> StopToken {
        self.shared.stop.token()
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

/// A scope, and a name for the work that is added to it: see [`ScopeHandle::named`].
pub struct Named<'a> {
    scope: &'a ScopeHandle,
    name: WorkName,
}

impl Named<'_> {
    /// Associates `sender` with the scope under this name: see [`ScopeHandle::nest`].
    pub fn nest<S: Sender>(self, sender: S) -> Nest<S, Membership> {
        nest_named(self.name, sender, self.scope)
    }

    /// Starts `sender` now under this name: see [`ScopeHandle::spawn`].
    ///
    /// # Errors
    /// Fails if the scope is closed, or if the frame allocator has no memory left.
    pub fn spawn<'e, S>(self, sender: S, env: impl Into<Option<&'e Env>>) -> Result<(), ScopeSpawnError<S>>
    where
        S: Sender<Value: NoValue, Error: NoError> + 'static,
    {
        spawn_named(self.name, sender, self.scope, env.into())
    }

    /// Starts `sender` now under this name and returns a sender of its outcome: see
    /// [`ScopeHandle::spawn_future`].
    ///
    /// # Errors
    /// Fails if the scope is closed, or if the frame allocator has no memory left.
    pub fn spawn_future<'e, S>(
        self,
        sender: S,
        env: impl Into<Option<&'e Env>>,
    ) -> Result<SpawnFuture<S::Value, S::Error>, ScopeSpawnError<S>>
    where
        S: Sender<Value: Send, Error: Send> + 'static,
    {
        spawn_future_named(self.name, sender, self.scope, env.into())
    }
}

impl fmt::Debug for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Named({})", self.name)
    }
}
