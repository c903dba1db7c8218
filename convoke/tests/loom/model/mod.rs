//! What the models share: how far they are explored, which outcomes they have reached, and storage whose use after its
//! end is noticed.

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

/// Runs the model under every schedule with at most `preemptions` preemptions.
///
/// Work, a task and a scope take more steps than a model has room for by default.
pub fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Counts how often an outcome was reached, over all schedules: a `static`, asserted after the model.
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

/// Counts within one schedule. No synchronisation that the model could see, so none that it could lean on.
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

/// Ends the life of something in a box: drops it and overwrites it with rubbish, so that whoever still uses it stumbles.
/// The memory itself is given back by [`empty_quarantine`], when the schedule is over.
///
/// # Safety
/// `memory` came from `Box::into_raw` and is not used any more.
pub unsafe fn end<T>(memory: *mut T) {
    // SAFETY: the caller's.
    unsafe {
        memory.drop_in_place();
        memory.cast::<u8>().write_bytes(0xDB, size_of::<T>());
    }
    let give_back = |memory: usize| {
        // SAFETY: it came from a box of this type, and what was in it has been dropped.
        drop(unsafe {
            Box::from_raw(std::ptr::with_exposed_provenance_mut::<core::mem::MaybeUninit<T>>(memory))
        });
    };
    QUARANTINE.with_borrow_mut(|quarantine| quarantine.push((memory.expose_provenance(), give_back)));
}

/// An address, and how to give the memory back.
type Ended = (usize, fn(usize));

thread_local! {
    /// Of the thread that runs the model: all threads inside it are that one.
    static QUARANTINE: RefCell<Vec<Ended>> = const { RefCell::new(Vec::new()) };
}

/// Gives back what was ended in this schedule.
pub fn empty_quarantine() {
    for (memory, give_back) in QUARANTINE.take() {
        give_back(memory);
    }
}

/// A receiver that ends the operation it belongs to, as spawned work does.
pub struct EndsIt<S: Sender> {
    boxed: Arc<Boxed<S>>,
    env: Env,
    seen: Seen,
}

/// Where the operation is. Written before it is started.
pub struct Boxed<S: Sender>(UnsafeCell<Option<Address<S>>>);

type Address<S> = NonNull<<S as Sender>::Operation<EndsIt<S>>>;

// SAFETY: written before the operation is started, and read when it completes.
unsafe impl<S: Sender> Sync for Boxed<S> {}
// SAFETY: as above; the operation is `Send`.
unsafe impl<S: Sender> Send for Boxed<S> {}

/// How often an operation has completed, and through which doors.
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
        // SAFETY: the operation has completed: from now on it may be destroyed. `end` makes it show if it is still used.
        unsafe { self.boxed.0.with_mut(|boxed| end((*boxed).take().unwrap().as_ptr())) };
    }

    fn env(&self) -> &Env {
        &self.env
    }
}

/// Connects and starts; the operation ends itself.
pub fn start<S: Sender>(sender: S, source: &StopSource, seen: &Seen) {
    let boxed = Arc::new(Boxed::<S>(UnsafeCell::new(None)));
    let env = Env::new().with(Changes::new().stop_token(source.token()));
    let receiver = EndsIt { boxed: boxed.clone(), env, seen: seen.clone() };
    let operation = NonNull::from(Box::leak(Box::new(sender.connect(receiver))));
    // SAFETY: the box is ours; it is started once, is pinned as nobody moves it, and its receiver frees it.
    unsafe {
        boxed.0.with_mut(|place| *place = Some(operation));
        std::pin::Pin::new_unchecked(&mut *operation.as_ptr()).start();
    }
}
