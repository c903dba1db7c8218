//! What happened, in its order and in the words of the test alone: `testing::Trace` says when it was and in which task.

use std::sync::{Arc, Mutex};

/// Clones write to the same notes.
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
