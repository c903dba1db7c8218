//! `Trace`: what a program did, in order, compared as a whole. `difference.rs` shows where two texts differ.

mod difference;

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::stage::Stage;
use convoke_core::raw::Frame;
use convoke_inspect::tree::tree;

/// A list of events that a program notes, each with the time on its [`Stage`] and the name of its task, if it
/// has one. Clones share the trace. It prints as one line for each event.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::testing::{self, Trace};
///
/// let trace = Trace::new();
/// let notes = trace.clone();
/// testing::run(async move {
///     scope(async |s| {
///         let reads = notes.clone();
///         s.named("reader").spawn(async move {
///             sleep(Duration::from_millis(1500)).await;
///             reads.note("read a page");
///         });
///         notes.note("opened");
///     })
///     .await;
///     notes.note("closed");
/// });
/// trace.assert_eq("
///     0s test: opened
///     1.5s reader: read a page
///     1.5s test: closed
/// ");
/// ```
#[derive(Clone, Default)]
pub struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    /// Creates a trace without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event as one line, after the time and the task's name where they are known.
    pub fn note(&self, event: impl fmt::Display) {
        let time = Stage::current().map(|stage| match stage.elapsed() {
            Duration::ZERO => "0s ".to_owned(),
            elapsed => format!("{elapsed:?} "),
        });
        let time = time.unwrap_or_default();
        let task = name_of_task().map(|name| format!("{name}: ")).unwrap_or_default();
        let line = format!("{time}{task}{event}").replace('\n', "\\n");
        self.lock().push(line);
    }

    /// Returns the events so far.
    pub fn lines(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// Takes the events out and leaves the trace empty.
    pub fn take(&self) -> Vec<String> {
        core::mem::take(&mut *self.lock())
    }

    /// Compares the whole trace with `expected`. Empty lines of `expected`, and white space around its lines,
    /// are ignored.
    ///
    /// # Panics
    /// If they differ. The message shows both, line by line: expected events that did not happen after `-`,
    /// unexpected ones after `+`.
    #[track_caller]
    pub fn assert_eq(&self, expected: &str) {
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let lines = self.lines();
        let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        if lines != expected {
            panic!(
                "the trace differs (- expected, + happened):\n{}",
                difference::difference(&expected, &lines)
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the name of the running task, if it has one.
fn name_of_task() -> Option<String> {
    let task = Frame::current(|frame| frame.map(|frame| frame.operation_owner().owner_ref().address()))?;
    let tree = tree();
    let own = tree.tasks().find(|other| other.address() == task.addr().get())?;
    own.name().map(str::to_owned)
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lock().join("\n"))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trace").field(&*self.lock()).finish()
    }
}
