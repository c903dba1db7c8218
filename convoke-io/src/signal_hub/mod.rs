//! The signal hub: it delivers signals to the tasks that subscribed to them. There is one hub for the process
//! and one for each simulated host.
//!
//! A signal source (the service in `convoke-net`, or a simulation) calls [`SignalHub::hear`] on any thread,
//! but never inside a signal handler. The hub puts the signal into the inbox of each subscription that wants
//! it. Only the owner of a [`Signals`] takes signals out of its inbox. No lock is held while a task is woken.
//!
//! | module | contents |
//! | --- | --- |
//! | `kind` | `Signal`, the number of a signal |
//! | `subscription` | `Signals`, an inbox that a task waits for |

mod kind;
mod subscription;

use core::cmp::Ordering;
use core::fmt;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::{Panic, StopReason, StopSource};

pub use kind::Signal;
pub use subscription::{SignalSource, Signals};

use convoke_core::raw::visit_step;
use subscription::Inbox;

/// Delivers signals to their subscribers. A driver with signals of its own has one: see
/// [`Driver::signals`](crate::driver::Driver::signals).
#[derive(Default)]
pub struct SignalHub {
    inboxes: Mutex<Inboxes>,
    asks_to_stop: Option<StopSource>,
}

/// The inboxes in order of subscription, which is that of their numbers. They are found by a binary search, so removing one does not
/// visit the others. Not a `BTreeMap`: its code was an eighth of what this crate compiles.
#[derive(Default)]
struct Inboxes {
    by_number: Vec<(InboxNumber, Arc<Inbox>)>,
    last_number: u64,
}

/// The number of an inbox in its hub.
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
    /// Creates a hub without subscribers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a hub that also requests a stop from `source` on SIGINT and SIGTERM, as `#[convoke::main]`
    /// does.
    pub fn asking(source: StopSource) -> Self {
        Self { asks_to_stop: Some(source), ..Self::default() }
    }

    /// Delivers a signal to all its subscribers. May be called from any thread, but not inside a signal
    /// handler.
    pub fn hear(&self, signal: Signal) {
        if let Some(source) = self.asks_to_stop.as_ref().filter(|_| signal.asks_to_stop()) {
            // The panic hook has reported a panic of a stop callback.
            let _ = Panic::catch(|| source.request_stop(StopReason::Signal(signal.number())));
        }
        // Collected first: a task that is woken may subscribe.
        let mut inboxes = Vec::new();
        for (_, inbox) in &self.lock().by_number {
            if inbox.wants(signal) {
                inboxes.push(inbox.clone());
            }
        }
        for inbox in inboxes {
            let _ = Panic::catch(|| inbox.put(signal));
        }
    }

    /// Subscribes to signals of this hub. Tasks use `convoke::signal::signals` instead, which finds the hub.
    ///
    /// # Errors
    /// Fails if `of` is empty.
    pub fn subscribe(self: &Arc<Self>, of: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        Signals::subscribe(of.into_iter().collect(), self.clone(), None)
    }

    fn lock(&self) -> MutexGuard<'_, Inboxes> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an inbox. Returns the number to remove it with.
    fn add(&self, inbox: Arc<Inbox>) -> InboxNumber {
        let mut inboxes = self.lock();
        inboxes.last_number += 1;
        let number = InboxNumber(inboxes.last_number);
        inboxes.by_number.push((number, inbox));
        number
    }

    fn remove(&self, number: InboxNumber) {
        let mut inboxes = self.lock();
        if let Ok(at) = inboxes.by_number.binary_search_by(|(other, _)| other.cmp(&number)) {
            let inbox = inboxes.by_number.remove(at);
            // Dropped without the lock: its waker is code of the program.
            drop(inboxes);
            drop(inbox);
        }
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
        const MANY: usize = if cfg!(miri) { 40 } else { 40_000 };
        let hub = Arc::new(SignalHub::new());
        let subscribe = |_| hub.subscribe([Signal::HANGUP]).unwrap();
        let mut subscriptions: Vec<Signals> = (0..MANY).map(subscribe).collect();
        // From the back, then from the front.
        let front: Vec<Signals> = subscriptions.drain(..MANY / 2).collect();
        let taken = count_steps(|| {
            while let Some(last) = subscriptions.pop() {
                drop(last);
            }
            drop(front);
        });
        assert!(hub.lock().by_number.is_empty());
        let most = MANY * 4 * MANY.ilog2() as usize;
        assert!(taken <= most, "{taken} steps to drop {MANY} subscriptions");
    }
}
