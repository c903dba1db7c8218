//! Tools to put a sender through its paces: start it by hand, complete it by hand, look at what it did.

pub mod frame_allocator_contract;

use core::fmt;
use core::pin::Pin;
use core::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::executor::{RunQueue, Runnable};
use crate::operation::Handshake;
use crate::prelude::*;
use crate::stop::{OnStop, RawCallback};
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
        Self::with_env(sender, Env::new().with(crate::env::Changes::new().stop_token(source.token())))
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
    Env::new().with(crate::env::Changes::new().stop_token(source.token()))
}

/// A sender for each of the four doors, of one type, each with the outcome it will have.
pub fn all_doors<V: Send + Clone, E: Send + Clone>(value: V, error: E) -> [(Outcome<V, E>, Ends<V, E>); 4] {
    let doors = || {
        [
            Outcome::Value(value.clone()),
            Outcome::Error(error.clone()),
            Outcome::Stopped,
            Outcome::Panicked(Panic::new("door")),
        ]
    };
    let mut expected = doors().into_iter();
    doors().map(|outcome| (expected.next().expect("four doors"), Ends { outcome }))
}

/// A sender that completes at once with the outcome it was given.
#[derive(Debug)]
pub struct Ends<V, E> {
    outcome: Outcome<V, E>,
}

// SAFETY: what it is made of keeps the contract, and the receiver is completed last.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send, E: Send> Sender for Ends<V, E> {
    type Value = V;
    type Error = E;
    const COMPLETES: crate::Completes = crate::Completes::Inline;
    type Operation<R: Receiver<V, E>> = crate::algorithm::just::Ready<V, E, R>;

    fn connect<R: Receiver<V, E>>(self, receiver: R) -> Self::Operation<R> {
        crate::operation::Leaf::new(crate::algorithm::just::Complete { outcome: self.outcome, receiver })
    }
}

/// Counts the drops of what it hands out.
#[derive(Clone, Debug, Default)]
pub struct DropCount(Arc<AtomicUsize>);

/// Counted when it is dropped.
#[derive(Debug)]
pub struct DropToken(Arc<AtomicUsize>);

impl DropCount {
    /// None dropped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Something to be dropped.
    pub fn token(&self) -> DropToken {
        DropToken(self.0.clone())
    }

    /// How many were dropped.
    pub fn dropped(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for DropToken {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// An executor whose queue is run by the test.
#[derive(Clone, Debug, Default)]
pub struct ByHand(Arc<Mutex<RunQueue>>);

impl ByHand {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the first in the queue; false if there is none.
    pub fn run_one(&self) -> bool {
        let next = self.0.lock().unwrap().pop();
        next.map(Runnable::run).is_some()
    }

    /// Runs until the queue is empty; says how many.
    pub fn run_all(&self) -> usize {
        core::iter::from_fn(|| self.run_one().then_some(())).count()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all that waits, unrun.
    pub fn drop_all(&self) {
        while let Some(runnable) = { self.0.lock().unwrap().pop() } {
            drop(runnable);
        }
    }
}

impl PartialEq for ByHand {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[diagnostic::do_not_recommend]
impl Executor for ByHand {
    fn post(&self, runnable: Runnable) {
        self.0.lock().unwrap().push(runnable);
    }
}

/// Work that the test completes by hand, or that completes as stopped when it is asked to.
///
/// One gate makes one sender that is started.
pub struct Gate<V, E = Never>(Arc<Mutex<Waiting<V, E>>>);

struct Waiting<V, E> {
    waiter: Option<Waiter<V, E>>,
    /// Why it was asked to stop, if it was and heard it.
    asked: Option<StopReason>,
}

/// An operation that waits: its address, and how to complete it.
struct Waiter<V, E> {
    operation: NonNull<()>,
    complete: unsafe fn(NonNull<()>, Outcome<V, E>),
}

// SAFETY: the operation is `Send`, and whoever takes the waiter out of the mutex is the one to complete it.
unsafe impl<V, E> Send for Waiter<V, E> {}

impl<V, E> Clone for Gate<V, E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: Send, E: Send> Gate<V, E> {
    /// Closed.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Waiting { waiter: None, asked: None })))
    }

    /// The work that waits at the gate.
    pub fn sender(&self) -> AtGate<V, E, ()> {
        self.holding(())
    }

    /// The same, with something that lives in its operation.
    pub fn holding<H: Send>(&self, held: H) -> AtGate<V, E, H> {
        AtGate { gate: self.clone(), held, deaf: false }
    }

    /// Work that waits at the gate and does not hear a stop request.
    pub fn deaf(&self) -> AtGate<V, E, ()> {
        AtGate { gate: self.clone(), held: (), deaf: true }
    }

    /// Why the work was asked to stop, if it was.
    pub fn asked_to_stop(&self) -> Option<StopReason> {
        self.0.lock().unwrap().asked
    }

    /// Whether work waits at the gate.
    pub fn is_waiting(&self) -> bool {
        self.0.lock().unwrap().waiter.is_some()
    }

    /// Completes the work that waits; false if none does (any more).
    pub fn complete(&self, outcome: Outcome<V, E>) -> bool {
        let waiter = self.0.lock().unwrap().waiter.take();
        // SAFETY: whoever takes the waiter completes it, once; it is alive until then.
        waiter.map(|waiter| unsafe { (waiter.complete)(waiter.operation, outcome) }).is_some()
    }
}

impl<V: Send, E: Send> Default for Gate<V, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V, E> fmt::Debug for Gate<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

/// The sender of a [`Gate`].
#[derive(Debug)]
pub struct AtGate<V, E, H> {
    gate: Gate<V, E>,
    held: H,
    deaf: bool,
}

// SAFETY: what it is made of keeps the contract, and the receiver is completed last.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send, E: Send, H: Send> Sender for AtGate<V, E, H> {
    type Value = V;
    type Error = E;
    type Operation<R: Receiver<V, E>> = GateOperation<V, E, H, R>;

    fn connect<R: Receiver<V, E>>(self, receiver: R) -> Self::Operation<R> {
        GateOperation {
            gate: self.gate,
            _held: self.held,
            deaf: self.deaf,
            receiver: Some(receiver),
            callback: None,
            started: Handshake::new(),
            outcome: None,
            _pinned: core::marker::PhantomPinned,
        }
    }
}

/// The operation of [`AtGate`].
pub struct GateOperation<V, E, H, R> {
    gate: Gate<V, E>,
    _held: H,
    deaf: bool,
    receiver: Option<R>,
    callback: Option<RawCallback<StopAtGate<V, E>>>,
    /// The work may be completed while it is still being started.
    started: Handshake,
    outcome: Option<Outcome<V, E>>,
    _pinned: core::marker::PhantomPinned,
}

/// A stop request opens the gate, if nobody has yet.
struct StopAtGate<V, E>(Gate<V, E>);

impl<V: Send, E: Send> OnStop for StopAtGate<V, E> {
    fn on_stop(self, reason: StopReason) {
        self.0.0.lock().unwrap().asked = Some(reason);
        self.0.complete(Outcome::Stopped);
    }
}

impl<V: Send, E: Send, H: Send, R: Receiver<V, E>> Operation for GateOperation<V, E, H, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of its place but the receiver, which is not structurally pinned.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: we are pinned until the receiver was completed; that happens at the meeting, to which both the one
        // who takes the waiter and we come.
        unsafe {
            let gate = this.as_ref().gate.clone();
            let callback = (*this.as_ptr()).callback.insert(RawCallback::new(StopAtGate(gate.clone())));
            let waiter = Waiter { operation: this.cast(), complete: Self::complete };
            assert!(gate.0.lock().unwrap().waiter.replace(waiter).is_none(), "one gate, one operation");
            // By its place and not through `as_ref`: the outcome beside it may be written just now.
            if let Some(receiver) = &(*this.as_ptr()).receiver
                && !(*this.as_ptr()).deaf
            {
                callback.register(receiver.env().stop());
            }
            Self::meet(this);
        }
    }
}

impl<V: Send, E: Send, H: Send, R: Receiver<V, E>> GateOperation<V, E, H, R> {
    /// # Safety
    /// Called once, with the operation that waits.
    unsafe fn complete(this: NonNull<()>, outcome: Outcome<V, E>) {
        let this = this.cast::<Self>();
        // SAFETY: the waiter was taken by us, so nobody else completes it; `start` does not look at the outcome before
        // the meeting.
        unsafe {
            (*this.as_ptr()).outcome = Some(outcome);
            Self::meet(this);
        }
    }

    /// # Safety
    /// Called once by `start` and once by `complete`.
    unsafe fn meet(this: NonNull<Self>) {
        // SAFETY: the second of the two is alone with the operation.
        unsafe {
            if this.as_ref().started.arrive() {
                let this = &mut *this.as_ptr();
                this.callback = None;
                if let (Some(receiver), Some(outcome)) = (this.receiver.take(), this.outcome.take()) {
                    receiver.complete(outcome);
                }
            }
        }
    }
}

impl<V, E, H, R> fmt::Debug for GateOperation<V, E, H, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GateOperation")
    }
}

/// What is known of where this sender completes.
pub fn completes_of<S: Sender>(_: &S) -> crate::Completes {
    S::COMPLETES
}

/// Starts the sender that `make` returns again and again, while a second thread opens its gate as soon as somebody
/// waits there and a third runs the executor: the work is completed while it is still being started.
pub fn race_a_gate<S>(rounds: u32, make: impl Fn(&ByHand, &Gate<u32>) -> S)
where
    S: Sender<Value = u32, Error = Never>,
{
    let (gates, opened) = std::sync::mpsc::channel::<(Gate<u32>, u32)>();
    let by_hand = ByHand::new();
    let runner = by_hand.clone();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let opener = std::thread::spawn(move || {
        for (gate, round) in opened {
            while !gate.is_waiting() {
                std::thread::yield_now();
            }
            assert!(gate.complete(Outcome::Value(round)));
        }
    });
    let runner = std::thread::spawn(move || {
        while !is_over.load(Ordering::Acquire) {
            if runner.run_all() == 0 {
                std::thread::yield_now();
            }
        }
    });
    for round in 0..rounds {
        let gate = Gate::new();
        let connected = Connected::new(make(&by_hand, &gate));
        gates.send((gate, round)).unwrap();
        assert_eq!(connected.start().wait(), Outcome::Value(round));
    }
    drop(gates);
    over.store(true, Ordering::Release);
    opener.join().unwrap();
    runner.join().unwrap();
}
