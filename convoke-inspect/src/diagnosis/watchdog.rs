//! The watchdog thread, and the guard that ends it.

use core::fmt;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use convoke_core::Panic;

use super::report::Finding;
use super::watcher::Watcher;

/// The function that handles a report.
pub(super) type Hook = Box<dyn Fn(&Finding) + Send>;

/// A guard: the process is watched while it exists. See [`Diagnosis::start`](super::Diagnosis::start).
#[must_use = "the diagnosis ends when this is dropped"]
pub struct Diagnosing {
    /// Dropped to end the thread.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Diagnosing {
    pub(super) fn start(mut watcher: Watcher, pause: Duration, hook: Hook) -> io::Result<Self> {
        let (over, is_over) = channel();
        let thread = thread::Builder::new().name("convoke watchdog".into()).spawn(move || {
            while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                tell(&watcher.check(Instant::now()), &hook);
            }
        })?;
        Ok(Self { over: Some(over), thread: Some(thread) })
    }
}

/// Passes reports to the hook. A panic of the hook is reported by the panic hook, and does not end the
/// diagnosis.
fn tell(reports: &[Finding], hook: &Hook) {
    for report in reports {
        let _ = Panic::catch(|| hook(report));
    }
}

/// Prints a report: the default hook.
pub(super) fn print(report: &Finding) {
    eprintln!("convoke: {report}");
}

impl Drop for Diagnosing {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take()
            // The hook itself may drop the guard.
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Diagnosing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagnosing").finish_non_exhaustive()
    }
}
