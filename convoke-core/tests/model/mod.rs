//! What the models share: how far they are explored, which outcomes they have reached, and storage whose use after its
//! end is noticed.

#![allow(dead_code, unreachable_pub)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs the model under every schedule with at most `preemptions` preemptions.
pub fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
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
        drop(unsafe { Box::from_raw(memory as *mut core::mem::MaybeUninit<T>) });
    };
    QUARANTINE.lock().unwrap().push((memory.expose_provenance(), give_back));
}

static QUARANTINE: Mutex<Vec<(usize, fn(usize))>> = Mutex::new(Vec::new());

/// Gives back what was ended in this schedule.
pub fn empty_quarantine() {
    for (memory, give_back) in QUARANTINE.lock().unwrap().drain(..) {
        give_back(memory);
    }
}
