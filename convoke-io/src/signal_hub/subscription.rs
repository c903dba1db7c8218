//! Subscriptions: each has an inbox of the signals that have arrived and were not taken yet.

use core::fmt;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_sync::Event;

use super::{InboxNumber, Signal, SignalHub};

/// The origin of a hub's signals, for example the process.
pub trait SignalSource: Send + Sync {
    /// Delivers this signal to the hub from now on.
    ///
    /// # Errors
    /// Fails if the system does not allow a program to handle it.
    fn listen_for(&self, signal: Signal) -> io::Result<()>;
}

/// A subscription to signals, from `convoke::signal::signals`. Dropping it ends the subscription.
///
/// Signals that arrive between two calls of [`next`](Signals::next) are not lost. A signal that arrives again
/// before it was taken counts once, as it does for the system.
#[must_use = "dropping it ends the subscription"]
pub struct Signals {
    inbox: Arc<Inbox>,
    /// The number of its inbox in the hub.
    number: InboxNumber,
    hub: Arc<SignalHub>,
    /// The origin of the hub's signals, if it is to be told which ones to deliver.
    process: Option<Arc<dyn SignalSource>>,
}

/// The part of a subscription that the hub fills.
pub(super) struct Inbox {
    wanted: Box<[Signal]>,
    /// The signals in order of arrival, each once: so there are never more than are wanted.
    arrived: Mutex<Vec<Signal>>,
    /// Set if there may be a signal. It is reset only under the lock, when `arrived` is empty, and set after
    /// each `push`: so it is set whenever there is one.
    any: Event,
}

impl Signals {
    /// Subscribes to these signals.
    pub fn subscribe(
        wanted: Box<[Signal]>,
        hub: Arc<SignalHub>,
        process: Option<Arc<dyn SignalSource>>,
    ) -> io::Result<Self> {
        if wanted.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no signal was named to subscribe to"));
        }
        let arrived = Mutex::new(Vec::with_capacity(wanted.len()));
        let inbox = Arc::new(Inbox { wanted, arrived, any: Event::new() });
        // Added before the source listens, so that no signal is missed.
        let number = hub.add(inbox.clone());
        let signals = Self { inbox, number, hub, process };
        if let Some(process) = &signals.process {
            signals.inbox.wanted.iter().try_for_each(|signal| process.listen_for(*signal))?;
        }
        Ok(signals)
    }

    /// Waits for the next signal, or takes one that has arrived already.
    ///
    /// - *Completes with* the signal, or stopped; a stop loses no signal.
    /// - *If dropped*, it stops waiting and loses no signal.
    /// - *Runs on* the current task. Outside a task it waits as well, and cannot be stopped. A chain that
    ///   waits here is [work](crate::IoContext::run) of its context; the subscription alone is not.
    ///
    /// ```
    /// # #[cfg(unix)]
    /// # {
    /// use convoke::signal::{Signal, raise, signals};
    ///
    /// let context = convoke::driver::io_context().unwrap();
    /// let outcome = context.block_on(async {
    ///     let mut users = signals([Signal::USER_1, Signal::USER_2])?;
    ///     raise(Signal::USER_2)?;
    ///     let first = users.next().await;
    ///     raise(Signal::USER_1)?; // It waits in the inbox.
    ///     std::io::Result::Ok((first, users.next().await))
    /// });
    /// assert_eq!(outcome.unwrap().unwrap(), (Signal::USER_2, Signal::USER_1));
    /// # }
    /// ```
    pub async fn next(&mut self) -> Signal {
        loop {
            self.inbox.any.wait().await;
            if let Some(signal) = self.try_next() {
                return signal;
            }
        }
    }

    /// Takes the next signal if one has arrived.
    pub fn try_next(&mut self) -> Option<Signal> {
        self.inbox.take()
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<Signal>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wants(&self, signal: Signal) -> bool {
        self.wanted.contains(&signal)
    }

    pub(super) fn put(&self, signal: Signal) {
        let mut arrived = self.lock();
        if !arrived.contains(&signal) {
            arrived.push(signal);
        }
        drop(arrived);
        self.any.set();
    }

    fn take(&self) -> Option<Signal> {
        let mut arrived = self.lock();
        let first = (!arrived.is_empty()).then(|| arrived.remove(0));
        if arrived.is_empty() {
            self.any.reset();
        }
        first
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.hub.remove(self.number);
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals")
            .field("wanted", &self.inbox.wanted)
            .field("arrived", &*self.inbox.lock())
            .finish_non_exhaustive()
    }
}
