//! `spawn`: starts work that only the scope waits for.

use core::fmt;

use crate::{OutcomeOf, Sender};
use convoke_core::{Env, Never, Outcome};

use super::block::{Counted, Ended, Ending, SpawnEnv};
use super::{Association, AsyncScope, WorkName};

mod sealed {
    pub trait Sealed {}
}

/// The value of work that can be spawned: `()`. There is no receiver for another value.
#[diagnostic::on_unimplemented(
    message = "spawned work cannot complete with a `{Self}`",
    label = "this work completes with a value of type `{Self}`, and only `()` can be spawned",
    note = "drop the value with `.then(drop)`, or use `spawn_future` to get it later"
)]
pub trait NoValue: sealed::Sealed {}

/// The error of work that can be spawned: [`Never`]. There is no receiver for another error.
#[diagnostic::on_unimplemented(
    message = "spawned work cannot fail with an error of type `{Self}`",
    label = "this work may fail with `{Self}`, and only work that cannot fail can be spawned",
    note = "handle the error with `.upon_error(…)`, or use `spawn_future` to get it later"
)]
pub trait NoError: sealed::Sealed {}

impl sealed::Sealed for () {}
impl sealed::Sealed for Never {}
impl NoValue for () {}
impl NoError for Never {}

/// The reason why work was not spawned. It contains the sender, which was not started.
#[must_use = "the sender that was not spawned is in here"]
pub struct ScopeSpawnError<S> {
    sender: S,
    reason: Reason,
}

#[derive(Clone, Copy, Debug)]
enum Reason {
    Closed,
    NoMemory,
}

impl<S> ScopeSpawnError<S> {
    pub(super) fn closed(sender: S) -> Self {
        Self { sender, reason: Reason::Closed }
    }

    pub(super) fn no_memory(sender: S) -> Self {
        Self { sender, reason: Reason::NoMemory }
    }

    /// Returns true if the scope was closed. If false, the frame allocator had no memory left.
    pub fn is_closed(&self) -> bool {
        matches!(self.reason, Reason::Closed)
    }

    /// Returns the sender that was not spawned.
    pub fn into_sender(self) -> S {
        self.sender
    }
}

impl<S> fmt::Debug for ScopeSpawnError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScopeSpawnError").field(&self.reason).finish()
    }
}

impl<S> fmt::Display for ScopeSpawnError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            Reason::Closed => "the scope is closed, or takes no more work",
            Reason::NoMemory => "the frame allocator has no memory left for the work",
        })
    }
}

impl<S> core::error::Error for ScopeSpawnError<S> {}

/// The handling of the outcome by `spawn`: only a panic is reported, to the scope.
struct ToScope;

impl<S, A> Ending<S, A> for ToScope
where
    S: Sender<Value: NoValue, Error: NoError> + 'static,
    A: Association,
{
    const OWN_STOP: bool = false;

    fn ended(mut work: Ended<S, A, Self>, outcome: OutcomeOf<S>) {
        if let Outcome::Panicked(panic) = outcome {
            work.panicked(panic);
        }
    }
}

/// Starts `sender` now, on this thread, in a scope. To run it on an executor:
/// `spawn(work.starts_on(&executor), &scope, &env)`.
///
/// The work sees the executor and the inherited locals of `env`; without one (`None`), those of [`Env::new`]. It is
/// asked to stop when `env` is, or when the scope's [`stop_token`](AsyncScope::stop_token) is. It uses one
/// allocation, which is freed before the work leaves the scope: from the frame allocator of `env`, if that names
/// one; else from that of the sender ([`Sender::allocator`]); else from the default. The work sees that allocator.
///
/// The work completes with `()` or as stopped: there is no receiver for a value or an error. Use
/// [`spawn_future`](super::spawn_future()) to get an outcome. A panic goes to the scope.
///
/// # Errors
/// Fails if the scope does not let the work in, or if the frame allocator has no memory left. Nothing has run then,
/// and the error contains the sender.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::async_scope::spawn;
/// use convoke::sender::prelude::*;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let scope = CountingScope::new();
/// for number in 0..10 {
///     let work = schedule(&pool.executor()).then(move |()| println!("{number}"));
///     spawn(work, &scope, None).unwrap();
/// }
/// assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
/// ```
#[track_caller]
pub fn spawn<'e, S, P>(
    sender: S,
    scope: &P,
    env: impl Into<Option<&'e Env>>,
) -> Result<(), ScopeSpawnError<S>>
where
    S: Sender<Value: NoValue, Error: NoError> + 'static,
    P: AsyncScope,
{
    spawn_named(WorkName::here(), sender, scope, env.into())
}

pub(crate) fn spawn_named<S, P>(
    name: WorkName,
    sender: S,
    scope: &P,
    env: Option<&Env>,
) -> Result<(), ScopeSpawnError<S>>
where
    S: Sender<Value: NoValue, Error: NoError> + 'static,
    P: AsyncScope,
{
    let Some(association) = scope.associate(name) else {
        return Err(ScopeSpawnError::closed(sender));
    };
    match Counted::new(SpawnEnv::of(env, &sender), scope.stop_token(), association, ToScope) {
        Ok(block) => {
            block.start(sender);
            Ok(())
        }
        Err(_) => Err(ScopeSpawnError::no_memory(sender)),
    }
}
