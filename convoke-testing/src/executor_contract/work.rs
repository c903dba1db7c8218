//! Numbered pieces of work that are written down in a ledger: run, stopped, or neither; never both, never twice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::Panic;
use convoke_core::raw::{Call, Runnable};

use crate::{Latch, runnable};

/// What work says that panics to see whether the executor survives it.
pub(super) const ON_PURPOSE: &str = "a panic that the executor contains";

#[derive(Clone)]
pub(super) struct Ledger {
    pages: Arc<[Page]>,
    /// Assertions that failed inside of work, where the executor contains them.
    complaints: Arc<Mutex<Vec<String>>>,
    /// Open when each was run or stopped.
    all_done: Latch,
}

#[derive(Default)]
struct Page {
    runs: AtomicUsize,
    stops: AtomicUsize,
}

impl Ledger {
    /// For so many pieces of work.
    pub(super) fn new(pieces: usize) -> Self {
        Self {
            pages: (0..pieces).map(|_| Page::default()).collect(),
            complaints: Arc::default(),
            all_done: Latch::new(pieces),
        }
    }

    /// Piece `index`.
    pub(super) fn piece(&self, index: usize) -> Runnable {
        self.piece_with(index, || ())
    }

    /// Piece `index`, which calls `f` if it is run.
    pub(super) fn piece_with(&self, index: usize, f: impl FnOnce() + Send + 'static) -> Runnable {
        let ledger = self.clone();
        runnable(move |call| {
            let page = &ledger.pages[index];
            let _done = CountsDown(&ledger.all_done);
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

    /// Waits until each is done, and looks that none was done twice.
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

    /// The same, and looks that each was run.
    #[track_caller]
    pub(super) fn wait_for_runs(&self) {
        self.wait();
        assert_eq!(self.stopped(), 0, "work was stopped although the executor had not ended");
    }

    pub(super) fn stopped(&self) -> usize {
        self.pages.iter().map(|page| page.stops.load(Ordering::Acquire)).sum()
    }
}

/// At the very end of a piece, also if it panics.
struct CountsDown<'l>(&'l Latch);

impl Drop for CountsDown<'_> {
    fn drop(&mut self) {
        self.0.count_down();
    }
}
