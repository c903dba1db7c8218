//! `spawn`: starts work that only the scope waits for.

use core::fmt;

use crate::{OutcomeOf, Sender};
use convoke_core::raw::sync::Arc;
use convoke_core::{Env, Never, Outcome};

use super::block::{Counted, Ended, Ending};
use super::name::Name;
use super::shared::Shared;

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
            Reason::Closed => "the scope is closed: its join was started, or it was dropped",
            Reason::NoMemory => "the frame allocator has no memory left for the work",
        })
    }
}

impl<S> core::error::Error for ScopeSpawnError<S> {}

/// The handling of the outcome by `spawn`: only a panic is reported, to the scope.
struct ToScope;

impl<S> Ending<S> for ToScope
where
    S: Sender<Value: NoValue, Error: NoError> + 'static,
{
    const OWN_STOP: bool = false;

    fn ended(mut work: Ended<S, Self>, outcome: OutcomeOf<S>) {
        if let Outcome::Panicked(panic) = outcome {
            work.panicked(panic);
        }
    }
}

pub(super) fn spawn<S>(
    shared: &Arc<Shared>,
    name: Name,
    sender: S,
    env: &Env,
) -> Result<(), ScopeSpawnError<S>>
where
    S: Sender<Value: NoValue, Error: NoError> + 'static,
{
    let Some(association) = Shared::enter(shared, name) else {
        return Err(ScopeSpawnError::closed(sender));
    };
    match Counted::new(env, &shared.stop.token(), association, ToScope) {
        Ok(block) => {
            block.start(sender);
            Ok(())
        }
        Err(_) => Err(ScopeSpawnError::no_memory(sender)),
    }
}
