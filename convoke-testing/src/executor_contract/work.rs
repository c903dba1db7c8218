//! Numbered pieces of work that are recorded in a ledger: each must be run or stopped, exactly once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::Panic;
use convoke_core::raw::{Call, Runnable};

use crate::{Latch, runnable};

/// The message of a panic that tests whether the executor contains it.
pub(super) const ON_PURPOSE: &str = "a panic that the executor contains";

#[derive(Clone)]
pub(super) struct Ledger {
    pages: Arc<[Page]>,
    /// Assertions that failed inside work, where the executor contains the panic.
    complaints: Arc<Mutex<Vec<String>>>,
    /// Opens when each piece was run or stopped.
    all_done: Latch,
}

#[derive(Default)]
struct Page {
    runs: AtomicUsize,
    stops: AtomicUsize,
}

impl Ledger {
    /// Creates a ledger for `pieces` pieces of work.
    pub(super) fn new(pieces: usize) -> Self {
        Self {
            pages: (0..pieces).map(|_| Page::default()).collect(),
            complaints: Arc::default(),
            all_done: Latch::new(pieces),
        }
    }

    /// Returns piece `index`.
    pub(super) fn piece(&self, index: usize) -> Runnable {
        self.piece_with(index, || ())
    }

    /// Returns piece `index`, which calls `f` if it is run.
    pub(super) fn piece_with(&self, index: usize, f: impl FnOnce() + Send + 'static) -> Runnable {
        let ledger = self.clone();
        runnable(move |call| {
            let page = &ledger.pages[index];
            let _done = CountDownOnDrop(&ledger.all_done);
            match call {
                Call::Run => {
                    page.runs.fetch_add(1, Ordering::AcqRel);
                    if let Err(panic) = Panic::catch(f) {
                        ledger.complain(panic);
                    }
                }
                Call::Stop => drop(page.stops.fetch_add(1, Ordering::AcqRel)),
            }
        })
    }

    fn complain(&self, panic: Panic) {
        if panic.message() != ON_PURPOSE {
            let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
            complaints.push(panic.message().to_owned());
        }
        panic.resume();
    }

    /// Waits until all pieces are done, and checks that each was done once.
    #[track_caller]
    pub(super) fn wait(&self) {
        self.all_done.wait();
        if let Some(complaint) = self.complaints.lock().unwrap_or_else(PoisonError::into_inner).first() {
            panic!("{complaint}");
        }
        for (index, page) in self.pages.iter().enumerate() {
            let (runs, stops) = (page.runs.load(Ordering::Acquire), page.stops.load(Ordering::Acquire));
            assert_eq!(runs + stops, 1, "piece {index} was run {runs} and stopped {stops} times");
        }
    }

    /// Waits until all pieces are done, and checks that each was run once.
    #[track_caller]
    pub(super) fn wait_for_runs(&self) {
        self.wait();
        assert_eq!(self.stopped(), 0, "work was stopped although the executor had not ended");
    }

    pub(super) fn stopped(&self) -> usize {
        self.pages.iter().map(|page| page.stops.load(Ordering::Acquire)).sum()
    }
}

/// A guard that counts down at the end of a piece, also if it panics.
struct CountDownOnDrop<'l>(&'l Latch);

impl Drop for CountDownOnDrop<'_> {
    fn drop(&mut self) {
        self.0.count_down();
    }
}
