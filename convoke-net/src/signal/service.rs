//! `SignalService`: the service of a context that finds the signal hub for its tasks.

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

/// The signals of a context: those of the process, or of a simulated host. [`signals`](super::signals) uses
/// it; outside a task, call `context.services().use_service::<SignalService>()`.
///
/// After the context has ended no new subscription is possible. Existing ones go on. The thread that receives
/// the signals of the process ends with the last service and the last subscription.
pub struct SignalService(Mutex<Origin>);

enum Origin {
    /// Those of the process, without a subscription yet.
    NotYet,
    Process(Arc<Process>),
    Host(Arc<SignalHub>),
    ShutDown,
}

impl SignalService {
    /// Subscribes to these signals: see [`signals`](super::signals).
    ///
    /// # Errors
    /// Fails as `signals` does, and if the context has ended.
    pub fn subscribe(&self, of: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        let wanted = of.into_iter().collect();
        let mut origin = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Origin::NotYet = *origin {
            *origin = Origin::Process(Process::get()?);
        }
        let (hub, process) = match &*origin {
            Origin::Process(process) => (process.hub().clone(), Some(process.clone())),
            Origin::Host(hub) => (hub.clone(), None),
            Origin::NotYet | Origin::ShutDown => return Err(shut_down()),
        };
        drop(origin);
        Signals::subscribe(wanted, hub, process.map(|process| process as Arc<dyn SignalSource>))
    }

    /// Raises a signal: see [`raise`](super::raise).
    ///
    /// # Errors
    /// Fails if the system has no such signal.
    pub fn raise(&self, signal: Signal) -> io::Result<()> {
        let origin = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Origin::Host(hub) = &*origin else {
            drop(origin);
            return process::raise(signal);
        };
        let hub = hub.clone();
        drop(origin);
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
        let origin = {
            let mut origin = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::replace(&mut *origin, Origin::ShutDown)
        };
        // Dropped without the lock: the last `Process` waits for its thread, which may be about to call this
        // service.
        drop(origin);
    }
}

impl FromContext for SignalService {
    fn from_context(context: &Context) -> Self {
        let driver = context.executor().and_then(|executor| driver_of_executor(&executor));
        let own = driver.and_then(|driver| driver.signals());
        Self(Mutex::new(own.map_or(Origin::NotYet, Origin::Host)))
    }
}

impl fmt::Debug for SignalService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignalService")
    }
}
