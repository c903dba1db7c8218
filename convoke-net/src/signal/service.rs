//! The service of a context that leads to the signals which its tasks hear of.

use core::fmt;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::Mutex;
use convoke_task::Context;
use convoke_task::context::{FromContext, Service};

use super::process::{self, Process};
use super::{Signal, SignalHub, SignalSource, Signals};
use convoke_io::context::driver_of_executor;
use convoke_io::driver::shut_down;

/// The signals of a context: those of the process, or of the simulated host that it is. [`signals`](super::signals) asks for it;
/// outside a task, `context.services().use_service::<SignalService>()` is it.
///
/// When the context ends nobody can subscribe any more; who has subscribed hears of signals for as long as he
/// likes. The thread that hears of them for the process ends with the last service and the last subscription.
pub struct SignalService(Mutex<Heard>);

enum Heard {
    /// The process's, of which nobody has wanted to hear yet.
    NotYet,
    Process(Arc<Process>),
    Host(Arc<SignalHub>),
    ShutDown,
}

impl SignalService {
    /// As [`signals`](super::signals).
    ///
    /// # Errors
    /// As there, and if the context has ended.
    pub fn subscribe(&self, of: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        let wanted = of.into_iter().collect();
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Heard::NotYet = *heard {
            *heard = Heard::Process(Process::get()?);
        }
        let (hub, process) = match &*heard {
            Heard::Process(process) => (process.hub().clone(), Some(process.clone())),
            Heard::Host(hub) => (hub.clone(), None),
            Heard::NotYet | Heard::ShutDown => return Err(shut_down()),
        };
        drop(heard);
        Signals::subscribe(wanted, hub, process.map(|process| process as Arc<dyn SignalSource>))
    }

    /// As [`raise`](super::raise).
    ///
    /// # Errors
    /// If the system has no such signal.
    pub fn raise(&self, signal: Signal) -> io::Result<()> {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Heard::Host(hub) = &*heard else {
            drop(heard);
            return process::raise(signal);
        };
        let hub = hub.clone();
        drop(heard);
        hub.hear(signal);
        Ok(())
    }
}

impl Service for SignalService {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    fn shutdown(&self) {
        let heard = {
            let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::replace(&mut *heard, Heard::ShutDown)
        };
        // Not under the lock: it may be the last, and wait for a thread, which may be about to ask this service for something.
        drop(heard);
    }
}

impl FromContext for SignalService {
    fn from_context(context: &Context) -> Self {
        let driver = context.executor().and_then(|executor| driver_of_executor(&executor));
        let own = driver.and_then(|driver| driver.signals());
        Self(Mutex::new(own.map_or(Heard::NotYet, Heard::Host)))
    }
}

impl fmt::Debug for SignalService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignalService")
    }
}
