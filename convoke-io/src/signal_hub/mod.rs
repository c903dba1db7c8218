//! Which tasks wait for which signals: one hub for the process, and one for each simulated host.

mod kind;
mod subscription;

use core::cmp::Ordering;
use core::fmt;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::{Panic, StopReason, StopSource};

pub use kind::Signal;
pub use subscription::{SignalSource, Signals};

use convoke_core::raw::visit_step;
use subscription::Inbox;

/// Tells all who want to hear of a signal. Drivers that have signals of their own have one: see
/// [`Driver::signals`](crate::driver::Driver::signals).
#[derive(Default)]
pub struct SignalHub {
    inboxes: Mutex<Inboxes>,
    asks_to_stop: Option<StopSource>,
}

/// Those who want to hear, by numbers in the order in which they came: so one leaves without a look at the others.
#[derive(Default)]
struct Inboxes {
    by_number: BTreeMap<InboxNumber, Arc<Inbox>>,
    last_number: u64,
}

/// Which inbox of a hub.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct InboxNumber(u64);

impl PartialOrd for InboxNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InboxNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        visit_step();
        self.0.cmp(&other.0)
    }
}

impl SignalHub {
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
        let told: Vec<_> =
            self.lock().by_number.values().filter(|inbox| inbox.wants(signal)).cloned().collect();
        for inbox in told {
            let _ = Panic::catch(|| inbox.put(signal));
        }
    }

    /// Hears of the signals that come here from now on: for whoever has the hub. Tasks use [`signals`](super::signals).
    ///
    /// # Errors
    /// If none is named.
    pub fn subscribe(self: &Arc<Self>, of: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        Signals::subscribe(of.into_iter().collect(), self.clone(), None)
    }

    fn lock(&self) -> MutexGuard<'_, Inboxes> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number to be removed by.
    fn add(&self, inbox: Arc<Inbox>) -> InboxNumber {
        let mut inboxes = self.lock();
        inboxes.last_number += 1;
        let number = InboxNumber(inboxes.last_number);
        inboxes.by_number.insert(number, inbox);
        number
    }

    fn remove(&self, number: InboxNumber) {
        // Dropped without the lock.
        let _inbox = self.lock().by_number.remove(&number);
    }
}

impl fmt::Debug for SignalHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalHub")
            .field("subscriptions", &self.lock().by_number.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use convoke_core::raw::count_steps;

    #[test]
    fn many_subscriptions_that_end_take_a_few_steps_each() {
        const MANY: usize = if cfg!(miri) { 100 } else { 40_000 };
        let hub = Arc::new(SignalHub::new());
        let subscribe = |_| hub.subscribe([Signal::HANGUP]).unwrap();
        let mut subscriptions: Vec<Signals> = (0..MANY).map(subscribe).collect();
        // The last first, and then from the front.
        let front: Vec<Signals> = subscriptions.drain(..MANY / 2).collect();
        let taken = count_steps(|| {
            while let Some(last) = subscriptions.pop() {
                drop(last);
            }
            drop(front);
        });
        assert!(hub.lock().by_number.is_empty());
        let most = MANY * 4 * MANY.ilog2() as usize;
        assert!(taken <= most, "{taken} steps for {MANY} that end");
    }
}
