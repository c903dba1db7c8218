//! Notes of what happened, in order, without times and tasks. `testing::Trace` adds those.

use std::sync::{Arc, Mutex};

/// A list of notes. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}
