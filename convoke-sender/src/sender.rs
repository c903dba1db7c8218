//! The trait of work that has not started. The adaptors are provided methods, as `Iterator`'s are; each has
//! its own file in `algorithm`.

#![allow(unsafe_code)]

use crate::algorithm::{
    affine_on::{AffineOn, AffineTo},
    boxed::AnySender,
    bulk::{Bulk, CallEach},
    continues_on::{ContinuesOn, To},
    dematerialize::{Dematerialize, ValueAsOutcome},
    finally::{CleanUp, Finally},
    fork_join::{Fork, ForkJoin, Forks},
    into_result::{ErrorAsValue, IntoResult},
    let_error::{ErrorContinuation, LetError},
    let_stopped::{LetStopped, StoppedContinuation},
    let_value::{LetValue, ValueContinuation},
    map_error::{MapError, MapFailure},
    materialize::{Materialize, OutcomeAsValue},
    on::{OnSender, ReturnHop},
    split::Split,
    starts_on::StartsOn,
    stop_when::StopWhen,
    stopped_as_error::{StopToError, StoppedAsError},
    stopped_as_option::{StopAsNone, StoppedAsOption},
    then::{MapValue, Then},
    transpose::{ResultToDoors, Transpose},
    unstoppable::{Shielded, Unstoppable},
    upon_error::{ErrorToValue, UponError},
    upon_stopped::{StopToValue, UponStopped},
    with_env::{ComputedChanges, WithEnv},
    write_env::{GivenChanges, WriteEnv},
};
use crate::{Awaited, Completes, Receiver};
use convoke_core::env::Changes;
use convoke_core::raw::Operation;
use convoke_core::{Env, Executor, ExecutorRef, FrameAllocator, Never, Outcome};

/// A description of work that ends with an [`Outcome`]. Nothing happens until it is connected to a receiver
/// and started: by `sync_wait`, a scope or an `await`.
///
/// A sender is `Send`, and so are its closures: work may start on one thread and complete on another. The
/// values that pass through need not be `Send`.
///
/// A sender may borrow: `sync_wait` returns when the work has ended. To be awaited, a sender must be `'static`; a function
/// whose callers await what it returns says `impl` [`AwaitableSender`](crate::AwaitableSender).
///
/// To write a sender: an adaptor that only transforms an outcome implements
/// [`Transform`](crate::algorithm::transform::Transform), which needs no `unsafe`. Work that completes on its
/// own is made with [`from_callback`](crate::algorithm::from_callback). Other senders implement this trait:
/// `connect` moves the sender and the receiver into an [`Operation`]. `connect` must not panic; code that may
/// panic runs in `start` and is caught there.
///
/// # Safety
/// The owner of an operation frees its storage once the receiver is completed, and relies on these rules:
/// 1. The receiver is completed in `start` or later, never in `connect`.
/// 2. When the receiver is completed, nothing uses the operation any more: no child is running, no part of it
///    is queued, no callback is registered. Nothing touches it afterwards.
/// 3. `COMPLETES` is true. A sender that says `Inline` has completed its receiver when `start` returns.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a sender",
    label = "expected a sender",
    note = "senders are made by `just`, `just_from`, `schedule`, `from_callback`, … and by adaptors on other senders; a future \
            becomes a sender by `task(future)`, and `block_on(future)` runs it without one",
    note = "a closure that is expected to return a sender must return one: wrap a plain value with `just(value)`, \
            or use `then` instead of `let_value`",
    note = "the values of a sender must be `Send` where they are stored, and its closures must be `Send`"
)]
#[must_use = "a sender does nothing until it is started: by `sync_wait`, a scope or an `await`"]
pub unsafe trait Sender: Sized + Send {
    // The bounds of the adaptors are on the type parameters and not in a `where` clause: the compiler then
    // reports an unmet bound in fewer lines.

    /// The type of the value it completes with.
    type Value;
    /// The type of the error it fails with: [`Never`] if it cannot fail.
    type Error;
    /// The compile-time knowledge about where this completes.
    const COMPLETES: Completes = Completes::Anywhere;
    /// The operation: this sender connected to a receiver.
    type Operation<R: Receiver<Self::Value, Self::Error>>: Operation;

    /// Connects the work to the receiver of its outcome.
    fn connect<R: Receiver<Self::Value, Self::Error>>(self, receiver: R) -> Self::Operation<R>;

    /// Returns the executor that a value will be completed on if the work starts in `env`, or `None` if that
    /// is not known.
    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        (Self::COMPLETES <= Completes::Here).then(|| env.executor().clone())
    }

    /// Returns the frame allocator that the work names for itself, if it does: by `write_env`. `spawn` and
    /// `spawn_future` use it where their environment names none. Adaptors answer for the sender that they start
    /// first.
    fn allocator(&self) -> Option<&FrameAllocator> {
        None
    }

    /// Returns the outcome in advance if all that the work does in `env` is to go to the back of that
    /// executor's queue. A task that awaits the sender then re-queues itself instead of starting an
    /// operation.
    #[doc(hidden)]
    #[inline]
    fn as_yield(&self, env: &Env) -> Option<OutcomeOf<Self>> {
        let _ = env;
        None
    }

    /// Returns the future of this sender, for generic code and for `impl Sender`; elsewhere `sender.await` makes it.
    /// A function that returns an [`AwaitableSender`](crate::AwaitableSender) spares its callers this.
    #[track_caller]
    fn into_awaited(self) -> Awaited<Self> {
        Awaited::new(self)
    }

    /// Changes the value. See [`algorithm::then`](crate::algorithm::then).
    fn then<F: FnOnce(Self::Value) -> T + Send, T>(self, f: F) -> Then<Self, F> {
        Then::new(self, MapValue(f))
    }

    /// Changes the error. See [`algorithm::map_error`](crate::algorithm::map_error).
    fn map_error<F: FnOnce(Self::Error) -> T + Send, T>(self, f: F) -> MapError<Self, F> {
        MapError::new(self, MapFailure(f))
    }

    /// Gives a sender that cannot fail the error type `E`, for use together with senders that can fail.
    ///
    /// ```
    /// use convoke::sender::prelude::*;
    ///
    /// let parse = |text: &'static str| just_from(move || text.parse::<u32>()).transpose();
    /// let parsed = just("42").may_fail().let_value(parse);
    /// assert_eq!(sync_wait(parsed), Outcome::Value(42));
    /// ```
    fn may_fail<E>(self) -> MapError<Self, fn(Never) -> E>
    where
        Self: Sender<Error = Never>,
    {
        MapError::new(self, MapFailure(Never::absurd))
    }

    /// Continues with another sender made from the value. See
    /// [`algorithm::let_value`](crate::algorithm::let_value).
    fn let_value<F: FnOnce(Self::Value) -> S + Send, S: Sender<Error: SameError<Self::Error>>>(
        self,
        f: F,
    ) -> LetValue<Self, F> {
        LetValue::new(self, ValueContinuation(f))
    }

    /// Continues with another sender made from the error. See
    /// [`algorithm::let_error`](crate::algorithm::let_error).
    fn let_error<F: FnOnce(Self::Error) -> S + Send, S: Sender<Value = Self::Value>>(
        self,
        f: F,
    ) -> LetError<Self, F> {
        LetError::new(self, ErrorContinuation(f))
    }

    /// Continues with another sender if the work was stopped. See
    /// [`algorithm::let_stopped`](crate::algorithm::let_stopped).
    fn let_stopped<F: FnOnce() -> S + Send, S: Sender<Value = Self::Value, Error = Self::Error>>(
        self,
        f: F,
    ) -> LetStopped<Self, F> {
        LetStopped::new(self, StoppedContinuation(f))
    }

    /// Turns an error into a value. See [`algorithm::upon_error`](crate::algorithm::upon_error).
    fn upon_error<F: FnOnce(Self::Error) -> Self::Value + Send>(self, f: F) -> UponError<Self, F> {
        UponError::new(self, ErrorToValue(f))
    }

    /// Turns a stop into a value. See [`algorithm::upon_stopped`](crate::algorithm::upon_stopped).
    fn upon_stopped<F: FnOnce() -> Self::Value + Send>(self, f: F) -> UponStopped<Self, F> {
        UponStopped::new(self, StopToValue(f))
    }

    /// Turns value and error into one `Result` value. See
    /// [`algorithm::into_result`](crate::algorithm::into_result).
    fn into_result(self) -> IntoResult<Self> {
        IntoResult::new(self, ErrorAsValue)
    }

    /// Turns a `Result` value into a value or an error. See
    /// [`algorithm::transpose`](crate::algorithm::transpose).
    fn transpose<V, E>(self) -> Transpose<Self>
    where
        Self: Sender<Value = Result<V, E>, Error = Never>,
    {
        Transpose::new(self, ResultToDoors)
    }

    /// Turns a stop into `None`. See [`algorithm::stopped_as_option`](crate::algorithm::stopped_as_option).
    fn stopped_as_option(self) -> StoppedAsOption<Self> {
        StoppedAsOption::new(self, StopAsNone)
    }

    /// Turns a stop into an error. See [`algorithm::stopped_as_error`](crate::algorithm::stopped_as_error).
    fn stopped_as_error(self, error: Self::Error) -> StoppedAsError<Self, Self::Error>
    where
        Self::Error: Send,
    {
        StoppedAsError::new(self, StopToError(error))
    }

    /// Turns the outcome into the value. See [`algorithm::materialize`](crate::algorithm::materialize).
    fn materialize(self) -> Materialize<Self> {
        Materialize::new(self, OutcomeAsValue)
    }

    /// Turns a value that is an outcome into the outcome itself. See
    /// [`algorithm::dematerialize`](crate::algorithm::dematerialize).
    fn dematerialize<V, E>(self) -> Dematerialize<Self>
    where
        Self: Sender<Value = Outcome<V, E>, Error = Never>,
    {
        Dematerialize::new(self, ValueAsOutcome)
    }

    /// Starts the work on an executor. See [`algorithm::starts_on`](crate::algorithm::starts_on).
    fn starts_on<X: Executor>(self, executor: &X) -> StartsOn<X, Self> {
        crate::algorithm::starts_on::starts_on(executor, self)
    }

    /// Moves the outcome to an executor. See [`algorithm::continues_on`](crate::algorithm::continues_on).
    fn continues_on<X: Executor>(self, executor: &X) -> ContinuesOn<Self, X>
    where
        Self::Value: Send,
        Self::Error: Send,
    {
        ContinuesOn::new(self, To(executor.clone()))
    }

    /// Runs the work on an executor and returns to the current one. See
    /// [`algorithm::on`](crate::algorithm::on).
    fn on<X: Executor>(self, executor: &X) -> OnSender<X, Self>
    where
        Self::Value: Send,
        Self::Error: Send,
    {
        OnSender::new(self.starts_on(executor), ReturnHop)
    }

    /// Completes on an executor, and hops only if it must. See
    /// [`algorithm::affine_on`](crate::algorithm::affine_on).
    fn affine_on<X: Executor>(self, executor: &X) -> AffineOn<Self, X>
    where
        Self::Value: Send,
        Self::Error: Send,
    {
        AffineOn::new(self, AffineTo(executor.clone()))
    }

    /// Runs the work in an environment that a function computes. See
    /// [`algorithm::with_env`](crate::algorithm::with_env).
    fn with_env<F: FnOnce(&Env) -> Changes + Send>(self, f: F) -> WithEnv<Self, F> {
        WithEnv::new(ComputedChanges { sender: self, f })
    }

    /// Runs the work in a changed environment. See [`algorithm::write_env`](crate::algorithm::write_env).
    fn write_env(self, changes: Changes) -> WriteEnv<Self> {
        WriteEnv::new(GivenChanges { sender: self, changes })
    }

    /// Shields the work from stop requests. See [`algorithm::unstoppable`](crate::algorithm::unstoppable).
    fn unstoppable(self) -> Unstoppable<Self> {
        Unstoppable::new(Shielded(self))
    }

    /// Runs a clean-up after the work, on every exit. See [`algorithm::finally`](crate::algorithm::finally).
    fn finally<C>(self, clean_up: C) -> Finally<Self, C>
    where
        C: Sender<Value = (), Error = Never>,
        Self::Value: Send,
        Self::Error: Send,
    {
        Finally::new(self, CleanUp(clean_up))
    }

    /// Stops the work when another sender completes. See [`algorithm::stop_when`](crate::algorithm::stop_when).
    fn stop_when<T: Sender>(self, trigger: T) -> StopWhen<Self, T> {
        StopWhen::new(self, trigger)
    }

    /// Erases the type. See [`algorithm::boxed`](crate::algorithm::boxed).
    fn boxed(self) -> AnySender<Self::Value, Self::Error>
    where
        Self: 'static,
        Self::Value: Send + 'static,
        Self::Error: Send + 'static,
    {
        AnySender::new(self)
    }

    /// Shares one result among several consumers. See [`algorithm::split`](crate::algorithm::split).
    fn split(self) -> Split<Self>
    where
        Self: 'static,
        Self::Value: Clone + Send,
        Self::Error: Clone + Send,
    {
        Split::new(self)
    }

    /// Passes one result to several continuations, which run concurrently. See
    /// [`algorithm::fork_join`](crate::algorithm::fork_join).
    fn fork_join<F>(self, branches: F) -> ForkJoin<Self, F>
    where
        F: Forks<Self::Value, Self::Error>,
    {
        ForkJoin::new(self, Fork(branches))
    }

    /// Calls a function with every index below `count` and the value, in parallel if the executor can. See
    /// [`algorithm::bulk`](crate::algorithm::bulk).
    fn bulk<F: Fn(usize, &Self::Value) + Send + Sync>(self, count: usize, f: F) -> Bulk<Self, F>
    where
        Self::Value: Send + Sync,
    {
        Bulk::new(self, CallEach::new(count, f))
    }
}

/// Type equality of errors: the bound of `let_value` on the error of the sender that follows.
#[diagnostic::on_unimplemented(
    message = "the sender that follows fails with `{Self}`, the one before it with `{E}`",
    label = "the two have different error types",
    note = "where one of them cannot fail (`Never`), say `may_fail()` there; else bring one to the type of the other with \
            `map_error`"
)]
pub trait SameError<E> {}

impl<E> SameError<E> for E {}

/// The outcome type of a sender.
pub type OutcomeOf<S> = Outcome<<S as Sender>::Value, <S as Sender>::Error>;
