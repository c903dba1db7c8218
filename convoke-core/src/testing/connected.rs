//! A sender that a test connects and starts by hand, and the outcome that is kept for it.

use core::fmt;
use core::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::env::Changes;
use crate::prelude::*;
use crate::sync::{Arc, Mutex};
use crate::{Operation, OutcomeOf, Receiver};

/// A sender connected to a receiver that keeps the outcome. Dropping it drops the operation unstarted.
pub struct Connected<S: Sender<Value: Send, Error: Send>> {
    operation: PinnedOperation<S>,
    kept: Arc<Kept<S>>,
}

/// An operation that was started. Dropping it before it has completed is a failure of the test.
pub struct Running<S: Sender<Value: Send, Error: Send>> {
    operation: Option<PinnedOperation<S>>,
    kept: Arc<Kept<S>>,
}

type PinnedOperation<S> = Pin<Box<<S as Sender>::Operation<Keep<S>>>>;

/// The receiver of [`Connected`].
pub struct Keep<S: Sender<Value: Send, Error: Send>>(Arc<Kept<S>>);

struct Kept<S: Sender<Value: Send, Error: Send>> {
    env: Env,
    outcome: Mutex<Option<OutcomeOf<S>>>,
    completions: AtomicUsize,
}

// SAFETY: the outcome is handed from the completing thread to the testing one through a mutex, and may be: value and
// error are `Send`.
unsafe impl<S: Sender<Value: Send, Error: Send>> Send for Keep<S> {}

impl<S: Sender<Value: Send, Error: Send>> Connected<S> {
    /// Connected in an environment that runs inline and never stops.
    pub fn new(sender: S) -> Self {
        Self::with_env(sender, Env::new())
    }

    /// Connected in an environment that stops with `source`.
    pub fn stoppable(sender: S, source: &StopSource) -> Self {
        Self::with_env(sender, Env::new().with(Changes::new().stop_token(source.token())))
    }

    /// Connected in this environment.
    pub fn with_env(sender: S, env: Env) -> Self {
        let kept = Arc::new(Kept { env, outcome: Mutex::new(None), completions: AtomicUsize::new(0) });
        Self { operation: Box::pin(sender.connect(Keep(kept.clone()))), kept }
    }

    /// Starts it.
    pub fn start(mut self) -> Running<S> {
        // SAFETY: it is started once, as `self` is consumed; `Running` keeps it in its box until it has completed, or
        // leaks it.
        unsafe { self.operation.as_mut().start() };
        Running { operation: Some(self.operation), kept: self.kept }
    }
}

impl<S: Sender<Value: Send, Error: Send>> Running<S> {
    /// Whether it has completed.
    pub fn is_complete(&self) -> bool {
        self.kept.completions.load(Ordering::Acquire) > 0
    }

    /// The outcome.
    ///
    /// # Panics
    /// If it has not completed.
    #[track_caller]
    pub fn outcome(self) -> OutcomeOf<S> {
        assert!(self.is_complete(), "the operation has not completed");
        let outcome = self.kept.outcome.lock().unwrap().take();
        outcome.expect("kept before it was counted")
    }

    /// Waits for the outcome, however long it takes, for operations that other threads complete.
    pub fn wait(self) -> OutcomeOf<S> {
        while !self.is_complete() {
            std::thread::yield_now();
        }
        self.outcome()
    }
}

impl<S: Sender<Value: Send, Error: Send>> Drop for Running<S> {
    fn drop(&mut self) {
        if !self.is_complete() {
            // Somebody may still point into it: better a leak than a crash that hides the failure.
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

/// An environment in which a stop was requested already.
pub fn stopped_env() -> Env {
    let source = StopSource::new();
    source.request_stop(StopReason::Requested);
    Env::new().with(Changes::new().stop_token(source.token()))
}
