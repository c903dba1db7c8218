//! A sender that a test connects and starts by hand, and its outcome.

#![allow(unsafe_code)]

use core::fmt;
use core::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::prelude::*;
use crate::{OutcomeOf, Receiver};
use convoke_core::env::Changes;
use convoke_core::raw::Operation;
use convoke_core::raw::sync::{Arc, Mutex};
use convoke_core::raw::{abort_on_unwind, abort_with};

/// A sender connected to a receiver that stores the outcome. Dropping it drops the operation unstarted.
pub struct Connected<S: Sender<Value: Send, Error: Send>> {
    operation: PinnedOperation<S>,
    stored: Arc<Stored<S>>,
}

/// An operation that was started. Dropping it before it has completed fails the test.
pub struct Running<S: Sender<Value: Send, Error: Send>> {
    operation: Option<PinnedOperation<S>>,
    stored: Arc<Stored<S>>,
}

type PinnedOperation<S> = Pin<Box<<S as Sender>::Operation<Keep<S>>>>;

/// The receiver of [`Connected`].
pub struct Keep<S: Sender<Value: Send, Error: Send>>(Arc<Stored<S>>);

struct Stored<S: Sender<Value: Send, Error: Send>> {
    env: Env,
    outcome: Mutex<Option<OutcomeOf<S>>>,
    completions: AtomicUsize,
}

// SAFETY: the outcome is passed from the completing thread to the testing one through a mutex, and value and
// error are `Send`.
unsafe impl<S: Sender<Value: Send, Error: Send>> Send for Keep<S> {}

impl<S: Sender<Value: Send, Error: Send>> Connected<S> {
    /// Connects `sender` in an environment that runs inline and never stops.
    pub fn new(sender: S) -> Self {
        Self::with_env(sender, Env::new())
    }

    /// Connects `sender` in an environment that stops with `source`.
    pub fn stoppable(sender: S, source: &StopSource) -> Self {
        Self::with_env(sender, Env::new().with(Changes::new().stop_token(source.token())))
    }

    /// Connects `sender` in `env`.
    pub fn with_env(sender: S, env: Env) -> Self {
        let stored = Arc::new(Stored { env, outcome: Mutex::new(None), completions: AtomicUsize::new(0) });
        Self { operation: Box::pin(sender.connect(Keep(stored.clone()))), stored }
    }

    /// Starts the operation. The sender borrows nothing, because a [`Running`] can be forgotten: its
    /// operation would then still run when what it borrows is gone. For senders that borrow there are
    /// [`outcome`](Connected::outcome), [`wait`](Connected::wait) and [`meanwhile`](Connected::meanwhile).
    ///
    /// ```compile_fail,E0597
    /// use convoke::prelude::*;
    /// use convoke::testing::{Connected, Gate};
    ///
    /// let gate = Gate::<()>::new();
    /// {
    ///     let local = String::from("gone soon");
    ///     let borrowed = &local;
    ///     let sender = gate.sender().then(move |()| borrowed.len());
    ///     std::mem::forget(Connected::new(sender).start());
    /// }
    /// gate.complete(Outcome::Value(()));
    /// ```
    pub fn start(self) -> Running<S>
    where
        S: 'static,
    {
        self.begin()
    }

    /// Starts the operation, and returns the outcome, which must be there when its start returns. The sender
    /// may borrow.
    ///
    /// If the operation has not completed, the process aborts with a message: it may borrow from the caller.
    pub fn outcome(self) -> OutcomeOf<S> {
        self.meanwhile(|_| ())
    }

    /// Starts the operation, calls `f` while it runs, and returns the outcome. The sender may borrow.
    ///
    /// If the operation has not completed when `f` returns or panics, the process aborts with a message: it
    /// may borrow from the caller.
    pub fn meanwhile(self, f: impl FnOnce(&Running<S>)) -> OutcomeOf<S> {
        let running = Scoped(self.begin());
        f(&running.0);
        running.end()
    }

    /// Starts the operation and waits for the outcome, without a limit. The sender may borrow: the operation
    /// has completed when this returns.
    pub fn wait(self) -> OutcomeOf<S> {
        self.begin().wait()
    }

    /// Starts the operation. A caller returns the result to the test only if the sender borrows nothing.
    fn begin(mut self) -> Running<S> {
        // SAFETY: it is started once, as `self` is consumed; `Running` holds it in its box until it has
        // completed, or leaks it. What it borrows outlives it: it borrows nothing if the `Running` is
        // returned to the test; else it has completed before `wait` returns, and before a `Scoped` is gone.
        abort_on_unwind(|| unsafe { self.operation.as_mut().start() });
        Running { operation: Some(self.operation), stored: self.stored }
    }
}

impl<S: Sender<Value: Send, Error: Send>> Running<S> {
    /// Returns true if the operation has completed.
    pub fn is_complete(&self) -> bool {
        self.stored.completions.load(Ordering::Acquire) > 0
    }

    /// Returns the outcome.
    ///
    /// # Panics
    /// Panics if the operation has not completed.
    #[track_caller]
    pub fn outcome(mut self) -> OutcomeOf<S> {
        assert!(self.is_complete(), "the operation has not completed");
        self.take_outcome()
    }

    /// Takes the outcome, which is there.
    fn take_outcome(&mut self) -> OutcomeOf<S> {
        let outcome = self.stored.outcome.lock().unwrap().take();
        outcome.expect("the outcome is stored before the completion is counted")
    }

    /// Waits for the outcome, without a limit, for operations that other threads complete.
    pub fn wait(self) -> OutcomeOf<S> {
        while !self.is_complete() {
            std::thread::yield_now();
        }
        self.outcome()
    }
}

/// An operation that may borrow from the function that holds this. The function neither returns nor unwinds
/// before the operation has completed: if it would, the process aborts.
struct Scoped<S: Sender<Value: Send, Error: Send>>(Running<S>);

impl<S: Sender<Value: Send, Error: Send>> Scoped<S> {
    fn end(mut self) -> OutcomeOf<S> {
        self.check();
        self.0.take_outcome()
    }

    fn check(&self) {
        if !self.0.is_complete() {
            abort_with(&"an operation that may borrow has not completed in time. Aborting.");
        }
    }
}

impl<S: Sender<Value: Send, Error: Send>> Drop for Scoped<S> {
    fn drop(&mut self) {
        self.check();
    }
}

impl<S: Sender<Value: Send, Error: Send>> Drop for Running<S> {
    fn drop(&mut self) {
        if !self.is_complete() {
            // Another thread may still use it: a leak is better than a crash that hides the failure.
            core::mem::forget(self.operation.take());
            if !std::thread::panicking() {
                panic!("an operation was dropped while it was running");
            }
        }
    }
}

#[diagnostic::do_not_recommend]
impl<S: Sender<Value: Send, Error: Send>> Receiver<S::Value, S::Error> for Keep<S> {
    fn complete(self, outcome: OutcomeOf<S>) {
        *self.0.outcome.lock().unwrap() = Some(outcome);
        assert_eq!(self.0.completions.fetch_add(1, Ordering::AcqRel), 0, "completed twice");
    }

    fn env(&self) -> &Env {
        &self.0.env
    }
}

impl<S: Sender<Value: Send, Error: Send>> fmt::Debug for Connected<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connected")
    }
}

impl<S: Sender<Value: Send, Error: Send>> fmt::Debug for Running<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Running(complete: {})", self.is_complete())
    }
}

impl<S: Sender<Value: Send, Error: Send>> fmt::Debug for Keep<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keep")
    }
}

/// Returns an environment in which a stop was requested already.
pub fn stopped_env() -> Env {
    let source = StopSource::new();
    source.request_stop(StopReason::Requested);
    Env::new().with(Changes::new().stop_token(source.token()))
}
