//! A subscription: the signals that somebody wants to hear of, kept until they are asked for.

use core::fmt;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_sync::Event;

use super::{InboxNumber, Signal, SignalHub};

/// Where the signals of a hub come from.
pub trait SignalSource: Send + Sync {
    /// Passes this signal on to the hub from now on.
    ///
    /// # Errors
    /// If the system does not let a program handle it.
    fn listen_for(&self, signal: Signal) -> io::Result<()>;
}

/// Signals that were subscribed to: see [`signals`](super::signals). Dropped, it hears of no more.
///
/// Nothing is lost between two calls of [`next`](Signals::next): what comes meanwhile is kept. A signal that comes again
/// before it was asked for is one, as it is for the system.
#[must_use = "signals are heard of as long as it is there"]
pub struct Signals {
    inbox: Arc<Inbox>,
    /// Its number on the hub.
    number: InboxNumber,
    hub: Arc<SignalHub>,
    /// Has the process listen.
    process: Option<Arc<dyn SignalSource>>,
}

/// What a subscription shares with whoever tells it.
pub(super) struct Inbox {
    wanted: Box<[Signal]>,
    /// In the order in which they came, each once: so there are never more than are wanted.
    came: Mutex<Vec<Signal>>,
    /// Whether there may be one. Reset only under the lock, by who finds none, and set after each that is put there: so it
    /// is set if there is one.
    any: Event,
}

impl Signals {
    /// Hears of these from now on.
    pub fn subscribe(
        wanted: Box<[Signal]>,
        hub: Arc<SignalHub>,
        process: Option<Arc<dyn SignalSource>>,
    ) -> io::Result<Self> {
        if wanted.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no signal was named to wait for"));
        }
        let came = Mutex::new(Vec::with_capacity(wanted.len()));
        let inbox = Arc::new(Inbox { wanted, came, any: Event::new() });
        // Before the process listens, so that none is missed.
        let number = hub.add(inbox.clone());
        let signals = Self { inbox, number, hub, process };
        if let Some(process) = &signals.process {
            signals.inbox.wanted.iter().try_for_each(|signal| process.listen_for(*signal))?;
        }
        Ok(signals)
    }

    /// The next one that came, or comes.
    ///
    /// - *Completes with* the signal; stopped, and then none is lost.
    /// - *If dropped*, it does not wait any more, and none is lost.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped. A chain that waits here is
    ///   [work](crate::IoContext::run) of its context; the subscription alone is not.
    ///
    /// ```
    /// # #[cfg(unix)]
    /// # {
    /// use convoke::signal::{Signal, raise, signals};
    ///
    /// let context = convoke::driver::io_context().unwrap();
    /// let outcome = context.run_until(async {
    ///     let mut users = signals([Signal::USER_1, Signal::USER_2])?;
    ///     raise(Signal::USER_2)?;
    ///     let first = users.next().await;
    ///     raise(Signal::USER_1)?; // Nobody waits just now.
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

    /// The next one, if it came already.
    pub fn try_next(&mut self) -> Option<Signal> {
        self.inbox.take()
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<Signal>> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wants(&self, signal: Signal) -> bool {
        self.wanted.contains(&signal)
    }

    pub(super) fn put(&self, signal: Signal) {
        let mut came = self.lock();
        if !came.contains(&signal) {
            came.push(signal);
        }
        drop(came);
        self.any.set();
    }

    fn take(&self) -> Option<Signal> {
        let mut came = self.lock();
        let first = (!came.is_empty()).then(|| came.remove(0));
        if came.is_empty() {
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
            .field("came", &*self.inbox.lock())
            .finish_non_exhaustive()
    }
}
