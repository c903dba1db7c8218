//! Shared parts of the models: limits of the exploration, outcomes that were reached, and storage that
//! detects use after free.

#![allow(dead_code, unreachable_pub)]
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_core::env::Changes;
use convoke_core::raw::Operation;
use convoke_core::raw::sync::{Arc, UnsafeCell};
use convoke_sender::prelude::*;
use convoke_sender::{OutcomeOf, Receiver};

/// The largest number of preemptions in any model, if it is set. `cargo xtask test` sets it to 2, which finds nearly all
/// bugs that any number finds; `cargo xtask sanitize --only loom` does not set it.
const MOST_PREEMPTIONS: &str = "CONVOKE_MOST_PREEMPTIONS";

/// Runs the model under every schedule with at most `preemptions` preemptions.
pub fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    check(preemptions.min(most_preemptions()), model);
}

/// Runs a model that reaches an outcome only with this many preemptions, whatever the limit.
pub fn explore_fully(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    check(preemptions, model);
}

/// Runs a model that takes more than ten seconds. Otherwise as [`explore`]; a limit is lower by one.
pub fn explore_long(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    check(preemptions.min(most_preemptions().saturating_sub(1)), model);
}

fn most_preemptions() -> usize {
    let most = std::env::var(MOST_PREEMPTIONS).ok();
    most.map_or(usize::MAX, |most| most.parse().expect("CONVOKE_MOST_PREEMPTIONS is a number"))
}

/// Work, a task and a scope take more steps than loom's default limit allows.
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// A count of how often an outcome was reached, over all schedules: a `static`, asserted after the model.
pub struct Reached(AtomicUsize);

impl Reached {
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    pub fn here(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn here_if(&self, reached: bool) {
        self.0.fetch_add(usize::from(reached), Ordering::Relaxed);
    }

    #[track_caller]
    pub fn assert(&self, what: &str) {
        assert!(self.0.load(Ordering::Relaxed) > 0, "no schedule reached: {what}");
    }
}

/// A count within one schedule. Loom does not see it, so the model cannot rely on it for synchronisation.
#[derive(Clone, Default)]
pub struct Count(std::sync::Arc<AtomicUsize>);

impl Count {
    pub fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Drops the contents of a box and overwrites them, so that a later use shows. [`empty_quarantine`] frees the
/// memory when the schedule is over.
///
/// # Safety
/// `memory` came from `Box::into_raw` and is not used any more.
pub unsafe fn end<T>(memory: *mut T) {
    // SAFETY: the caller promises that `memory` came from `Box::into_raw` and is not used any more.
    unsafe {
        memory.drop_in_place();
        memory.cast::<u8>().write_bytes(0xDB, size_of::<T>());
    }
    let give_back = |memory: usize| {
        // SAFETY: the memory came from a box of this type, and its contents have been dropped.
        drop(unsafe {
            Box::from_raw(std::ptr::with_exposed_provenance_mut::<core::mem::MaybeUninit<T>>(memory))
        });
    };
    QUARANTINE.with_borrow_mut(|quarantine| quarantine.push((memory.expose_provenance(), give_back)));
}

/// An address, and a function that frees the memory.
type Ended = (usize, fn(usize));

thread_local! {
    /// Belongs to the thread that runs the model: all threads of a model run on that one.
    static QUARANTINE: RefCell<Vec<Ended>> = const { RefCell::new(Vec::new()) };
}

/// Frees what was ended in this schedule.
pub fn empty_quarantine() {
    for (memory, give_back) in QUARANTINE.take() {
        give_back(memory);
    }
}

/// A receiver that destroys its own operation, as spawned work does.
pub struct EndsIt<S: Sender> {
    boxed: Arc<Boxed<S>>,
    env: Env,
    seen: Seen,
}

/// The address of the operation. Written before it is started.
pub struct Boxed<S: Sender>(UnsafeCell<Option<Address<S>>>);

type Address<S> = NonNull<<S as Sender>::Operation<EndsIt<S>>>;

// SAFETY: the cell is written before the operation is started, and read once, when it completes.
unsafe impl<S: Sender> Sync for Boxed<S> {}
// SAFETY: the cell contains a pointer to an operation, which is `Send`.
unsafe impl<S: Sender> Send for Boxed<S> {}

/// The number of completions of an operation, by kind of outcome.
#[derive(Clone, Default)]
pub struct Seen {
    pub completed: Count,
    pub values: Count,
    pub stopped: Count,
    pub panicked: Count,
}

impl<S: Sender> Receiver<S::Value, S::Error> for EndsIt<S> {
    fn complete(self, outcome: OutcomeOf<S>) {
        assert_eq!(self.seen.completed.add(), 0, "completed twice");
        match outcome {
            Outcome::Value(_) => _ = self.seen.values.add(),
            Outcome::Stopped => _ = self.seen.stopped.add(),
            Outcome::Panicked(_) => _ = self.seen.panicked.add(),
            Outcome::Error(_) => {}
        }
        // SAFETY: the operation has completed, so it may be destroyed. `end` detects a later use.
        unsafe { self.boxed.0.with_mut(|boxed| end((*boxed).take().unwrap().as_ptr())) };
    }

    fn env(&self) -> &Env {
        &self.env
    }
}

/// Connects and starts a sender; the operation destroys itself.
pub fn start<S: Sender>(sender: S, source: &StopSource, seen: &Seen) {
    let boxed = Arc::new(Boxed::<S>(UnsafeCell::new(None)));
    let env = Env::new().with(Changes::new().stop_token(source.token()));
    let receiver = EndsIt { boxed: boxed.clone(), env, seen: seen.clone() };
    let operation = NonNull::from(Box::leak(Box::new(sender.connect(receiver))));
    // SAFETY: the box is ours, started once, and does not move until its receiver frees it.
    unsafe {
        boxed.0.with_mut(|place| *place = Some(operation));
        std::pin::Pin::new_unchecked(&mut *operation.as_ptr()).start();
    }
}
