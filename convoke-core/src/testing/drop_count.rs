//! Counts what was dropped, wherever that happens.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sync::Arc;

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
