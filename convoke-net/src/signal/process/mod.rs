//! The signals of the process: one thread hears of them for all contexts, and tells the process's hub. It is there as
//! long as somebody may want to hear of one.
//!
//! How a system says that a signal has come is in a file for each: `unix.rs`, `windows.rs`, and `none.rs` for those that
//! have none. All have the same methods.

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
#[cfg(not(any(unix, windows)))]
#[path = "none.rs"]
mod system;

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Signal, SignalHub, SignalSource};
use system::SystemSignals;

pub(super) struct Process {
    system: SystemSignals,
    hub: Arc<SignalHub>,
}

impl Process {
    /// The one of this process, which is made if nobody has it.
    pub(super) fn get() -> io::Result<Arc<Self>> {
        static PROCESS: Mutex<Weak<Process>> = Mutex::new(Weak::new());
        let mut known = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = known.upgrade() {
            return Ok(process);
        }
        let hub = Arc::new(SignalHub::new());
        let tell = hub.clone();
        let system = SystemSignals::new(move |number| tell.hear(Signal::new(number)))?;
        let process = Arc::new(Self { system, hub });
        *known = Arc::downgrade(&process);
        Ok(process)
    }

    pub(super) fn hub(&self) -> &Arc<SignalHub> {
        &self.hub
    }
}

impl SignalSource for Process {
    fn listen_for(&self, signal: Signal) -> io::Result<()> {
        if SystemSignals::can_hear(signal.number()) {
            return self.system.listen_for(signal.number());
        }
        let message = format!(
            "{signal} cannot be heard of: this system has no such signal, or lets no program hear of it"
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }
}

/// Raises it, as another process would.
pub(super) fn raise(signal: Signal) -> io::Result<()> {
    let in_words =
        |error: io::Error| io::Error::new(error.kind(), format!("{signal} cannot be raised: {error}"));
    system::raise(signal.number()).map_err(in_words)
}
