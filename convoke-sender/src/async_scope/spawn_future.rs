//! `spawn_future`: starts work whose result may be used later.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::pin::Pin;

use crate::operation::{Completion, Listening, Pending, Starting, Until};
use crate::{Receiver, Sender};
use convoke_core::raw::OnStop;
use convoke_core::{Env, Never, Outcome, Panic, StopReason};

use super::block::{Counted, SpawnEnv};
use super::result::{Claim, ToConsumer, WaitingConsumer};
use super::spawn::ScopeSpawnError;
use super::{Association, AsyncScope, WorkName};

/// Starts `sender` now in a scope, as [`spawn`](super::spawn()) does, and returns a sender of its outcome. Any work
/// can be spawned like this. The scope keeps account of the work until it has completed, whether its outcome is used
/// or not.
///
/// In addition the work has its own stop source: it is asked to stop when the returned sender is dropped or stopped.
///
/// # Errors
/// Fails if the scope does not let the work in, or if the frame allocator has no memory left.
///
/// ```
/// use convoke::sender::async_scope::spawn_future;
/// use convoke::sender::prelude::*;
///
/// let scope = CountingScope::new();
/// let answer = spawn_future(just(6).then(|n| n * 7), &scope, None).unwrap();
/// assert_eq!(sync_wait(when_all((answer, scope.join()))), Outcome::Value((42, ())));
/// ```
#[track_caller]
pub fn spawn_future<'e, S, P>(
    sender: S,
    scope: &P,
    env: impl Into<Option<&'e Env>>,
) -> Result<SpawnFuture<S::Value, S::Error>, ScopeSpawnError<S>>
where
    S: Sender<Value: Send, Error: Send> + 'static,
    P: AsyncScope,
{
    spawn_future_named(WorkName::here(), sender, scope, env.into())
}

pub(crate) fn spawn_future_named<S, P>(
    name: WorkName,
    sender: S,
    scope: &P,
    env: Option<&Env>,
) -> Result<SpawnFuture<S::Value, S::Error>, ScopeSpawnError<S>>
where
    S: Sender<Value: Send, Error: Send> + 'static,
    P: AsyncScope,
{
    let Some(association) = scope.associate(name) else {
        return Err(ScopeSpawnError::closed(sender));
    };
    let to_consumer = ToConsumer::new(association.uncounted());
    match Counted::new(SpawnEnv::of(env, &sender), scope.stop_token(), association, to_consumer) {
        Ok(block) => {
            let future = SpawnFuture { claim: Some(Claim::new::<S, _>(&block)) };
            block.start(sender);
            Ok(future)
        }
        Err(_) => Err(ScopeSpawnError::no_memory(sender)),
    }
}

/// The result of work that has started already: a sender, made by [`spawn_future()`].
///
/// - *Completes with* the outcome of the work. If it is itself asked to stop before the work has completed,
///   it asks the work to stop; it then completes with the outcome if that comes at once, and else as stopped,
///   without waiting: the scope waits for the work.
/// - *If dropped* unused, or if its operation is dropped unstarted, the work is asked to stop
///   ([`StopReason::Abandoned`]) and its result is dropped. A panic of the work goes to the scope then.
/// - *Runs on* the thread on which the work completes; if that has completed already, on the thread that
///   starts this; if stopped, on the thread that requests the stop. Use `continues_on` or `affine_on` to
///   continue on another executor.
#[must_use = "dropping it asks the work to stop: if the result is not wanted, use `spawn`"]
pub struct SpawnFuture<V: Send + 'static, E: Send + 'static = Never> {
    /// Taken when it is used.
    claim: Option<Claim<V, E>>,
}

impl<V: Send, E: Send> Drop for SpawnFuture<V, E> {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            claim.abandon();
        }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: `Pending` completes the receiver last; the wait has ended and the
// callback is removed by then. Rule 3: `COMPLETES` is the default, `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send, E: Send> Sender for SpawnFuture<V, E> {
    type Value = V;
    type Error = E;
    type Operation<R: Receiver<V, E>> = FutureOperation<V, E, R>;

    fn connect<R: Receiver<V, E>>(self, receiver: R) -> FutureOperation<V, E, R> {
        Pending::new(UntilDelivered { future: Cell::new(Some(self)), _receiver: PhantomData }, receiver)
    }
}

/// The bounds of the parts of a result, as one path for `awaitable!`.
trait Sent: Send + 'static {}

impl<T: Send + 'static> Sent for T {}

crate::awaitable!([V: Sent, E: Sent] SpawnFuture<V, E>);

/// The operation of [`SpawnFuture`].
pub type FutureOperation<V, E, R> = Pending<UntilDelivered<V, E, R>>;

/// The wait of [`SpawnFuture`]: the work ends it when it delivers, `begin` if there is nothing to wait for,
/// or the consumer's stop request if the consumer could leave.
pub struct UntilDelivered<V: Send + 'static, E: Send + 'static, R> {
    /// Set until the start: dropping it abandons the result.
    future: Cell<Option<SpawnFuture<V, E>>>,
    _receiver: PhantomData<fn(R)>,
}

impl<V: Send, E: Send, R: Receiver<V, E>> Until for UntilDelivered<V, E, R> {
    type Given = V;
    type GivenError = E;
    type Value = V;
    type Error = E;
    type Receiver = R;
    type Listening = Listening<Leave<V, E>>;

    fn begin(self: Pin<&Self>, start: &Starting<'_, Self>, completion: Completion<V, E>) {
        let Some(claim) = self.future.take().and_then(|mut future| future.claim.take()) else { return };
        if let Some(waiting) = claim.consume(completion) {
            let scope = waiting.scope();
            // Caught: if a stop was requested already, this runs the stop callbacks of the work, and `start`
            // must not unwind.
            if let Err(panic) = Panic::catch(|| start.listen(Leave { waiting })) {
                scope.panicked(panic);
            }
        }
    }

    fn finish(self: Pin<&mut Self>, outcome: Outcome<V, E>) -> Outcome<V, E> {
        outcome
    }
}

/// The stop callback of the consumer: it passes the request on to the work, and the consumer leaves, unless
/// the work delivers.
pub struct Leave<V: 'static, E: 'static> {
    /// Its own count: the work that the request completes may end the consumer, and free this callback with
    /// it.
    waiting: WaitingConsumer<V, E>,
}

impl<V: Send, E: Send> OnStop for Leave<V, E> {
    fn on_stop(self, reason: StopReason) {
        if let Err(panic) = self.waiting.stop(reason) {
            panic.resume();
        }
    }
}

impl<V: Send, E: Send> fmt::Debug for SpawnFuture<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpawnFuture")
    }
}

impl<V: Send, E: Send, R> fmt::Debug for UntilDelivered<V, E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UntilDelivered")
    }
}

impl<V, E> fmt::Debug for Leave<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Leave")
    }
}
