//! A counter of drops, on any thread.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sync::Arc;

/// A counter of the drops of its tokens.
#[derive(Clone, Debug, Default)]
pub struct DropCount(Arc<AtomicUsize>);

/// A token that is counted when it is dropped.
#[derive(Debug)]
pub struct DropToken(Arc<AtomicUsize>);

impl DropCount {
    /// Creates a counter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a token.
    pub fn token(&self) -> DropToken {
        DropToken(self.0.clone())
    }

    /// Returns the number of tokens that were dropped.
    pub fn dropped(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for DropToken {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}
