//! Who wants to hear of which signals: one for the process, and one for each simulated host.

use core::fmt;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::{Panic, StopReason, StopSource};

use super::subscription::Inbox;
use super::{Signal, Signals};

/// Tells all who want to hear of a signal. Drivers that have signals of their own have one: see
/// [`Driver::signals`](crate::driver::Driver::signals).
#[derive(Default)]
pub struct Switchboard {
    inboxes: Mutex<Vec<Arc<Inbox>>>,
    asks_to_stop: Option<StopSource>,
}

impl Switchboard {
    /// Nobody wants to hear of anything yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for a program that is asked to stop by SIGINT and SIGTERM, as `#[convoke::main]` does it.
    pub fn asking(source: StopSource) -> Self {
        Self { asks_to_stop: Some(source), ..Self::default() }
    }

    /// A signal has come: all who want to hear of it do. From any thread, but not in a handler of the system's.
    pub fn hear(&self, signal: Signal) {
        if let Some(source) = self.asks_to_stop.as_ref().filter(|_| signal.asks_to_stop()) {
            // What a callback throws has been reported by the panic hook.
            let _ = Panic::catch(|| source.request_stop(StopReason::Signal(signal.number())));
        }
        // Whoever is told may subscribe.
        let told: Vec<_> = self.lock().iter().filter(|inbox| inbox.wants(signal)).cloned().collect();
        for inbox in told {
            let _ = Panic::catch(|| inbox.put(signal));
        }
    }

    /// Hears of the signals that come here from now on: for whoever has the switchboard. Tasks use [`signals`](super::signals).
    ///
    /// # Errors
    /// If none is named.
    pub fn subscribe(self: &Arc<Self>, of: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        Signals::subscribe(of.into_iter().collect(), self.clone(), None)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Inbox>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, inbox: Arc<Inbox>) {
        self.lock().push(inbox);
    }

    pub(super) fn remove(&self, inbox: &Arc<Inbox>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, inbox));
    }
}

impl fmt::Debug for Switchboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switchboard").field("subscriptions", &self.lock().len()).finish_non_exhaustive()
    }
}
