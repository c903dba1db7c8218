//! The signals of the process. One thread receives them for all contexts and calls the hub of the process. It
//! exists as long as there is a service or a subscription that uses it.
//!
//! Each system has a module with the same items, `SystemSignals` and `raise`: `unix`, `windows`, and `none`
//! for systems without signals.

#[cfg(not(any(unix, windows)))]
mod none;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(not(any(unix, windows)))]
use none as system;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use convoke_core::raw::{DropOutOfLine, LastUse, OutOfLine};

use super::{Signal, SignalHub, SignalSource};
use system::SystemSignals;

/// The thread that receives signals, and the hub that it calls.
pub(super) struct Process {
    system: OutOfLine<SystemSignals>,
    hub: Arc<SignalHub>,
}

impl DropOutOfLine for SystemSignals {
    #[inline(never)]
    fn drop_out_of_line(system: LastUse<'_, Self>) {
        system.drop_here();
    }
}

impl Process {
    /// Returns the one of this process, and creates it if there is none.
    pub(super) fn get() -> io::Result<Arc<Self>> {
        static PROCESS: Mutex<Weak<Process>> = Mutex::new(Weak::new());
        let mut known = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = known.upgrade() {
            return Ok(process);
        }
        let hub = Arc::new(SignalHub::new());
        let deliver = hub.clone();
        let system = SystemSignals::new(move |number| deliver.hear(Signal::new(number)))?;
        let process = Arc::new(Self { system: OutOfLine::new(system), hub });
        *known = Arc::downgrade(&process);
        Ok(process)
    }

    pub(super) fn hub(&self) -> &Arc<SignalHub> {
        &self.hub
    }
}

impl SignalSource for Process {
    fn listen_for(&self, signal: Signal) -> io::Result<()> {
        if SystemSignals::can_handle(signal.number()) {
            return self.system.listen_for(signal.number());
        }
        let message = format!(
            "{signal} cannot be subscribed to: this system has no such signal, or does not let programs handle it"
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }
}

/// Raises a signal, as another process would.
pub(super) fn raise(signal: Signal) -> io::Result<()> {
    let with_signal =
        |error: io::Error| io::Error::new(error.kind(), format!("{signal} cannot be raised: {error}"));
    system::raise(signal.number()).map_err(with_signal)
}
