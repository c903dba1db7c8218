//! `drain`: waits until a scope is empty, and leaves it open.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::pin::Pin;
use core::ptr::NonNull;

use crate::operation::{Completion, Listening, Pending, Posted, Resume, Starting, Until};
use crate::{Completes, Receiver, Sender};
use convoke_core::raw::FrameArc;
use convoke_core::raw::{Call, OnStop};
use convoke_core::{Never, Outcome, StopReason};

use super::shared::SharedScope;
use super::state::{AfterWait, Waiter};

/// The sender of [`drain`](super::CountingScope::drain).
#[must_use = "a sender does nothing until it is started"]
pub struct Drain {
    shared: FrameArc<SharedScope>,
}

impl Drain {
    pub(super) fn new(shared: FrameArc<SharedScope>) -> Self {
        Self { shared }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: `Pending` completes the receiver last; the callback is removed by then.
// Rule 3: the wait ends in `start`, or in the runnable, which is posted to the executor of the environment.
// If the runnable comes first, `start` completes.
#[diagnostic::do_not_recommend]
unsafe impl Sender for Drain {
    type Value = ();
    type Error = Never;
    const COMPLETES: Completes = Completes::Here;
    type Operation<R: Receiver<(), Never>> = DrainOperation<R>;

    fn connect<R: Receiver<(), Never>>(self, receiver: R) -> DrainOperation<R> {
        let (shared, posted, ticket) = (Some(self.shared), Posted::new(), Cell::new(None));
        Pending::new(UntilEmpty { shared, posted, ticket, _receiver: PhantomData }, receiver)
    }
}

crate::awaitable!([] Drain);

/// The operation of [`Drain`].
pub type DrainOperation<R> = Pending<UntilEmpty<R>>;

/// The wait of [`Drain`]. The thread that removes its waiter from the state of the scope posts it: the last
/// work to leave, or a stop request, which marks the ticket as withdrawn.
pub struct UntilEmpty<R> {
    /// Taken at the end.
    shared: Option<FrameArc<SharedScope>>,
    posted: Posted<Woken>,
    /// The key of the waiter, if it had to wait.
    ticket: Cell<Option<u64>>,
    _receiver: PhantomData<fn(R)>,
}

/// The completion of a drain, while it waits in the scope or in the queue of its executor.
#[derive(Debug)]
pub(super) struct Woken(Completion<()>);

impl Resume for Woken {
    fn resume(self, call: Call) {
        self.0.complete(if call == Call::Stop { Outcome::Stopped } else { Outcome::Value(()) });
    }
}

impl<R: Receiver<(), Never>> Until for UntilEmpty<R> {
    type Given = ();
    type GivenError = Never;
    type Value = ();
    type Error = Never;
    type Receiver = R;
    type Listening = Listening<Withdraw>;

    fn begin(self: Pin<&Self>, start: &Starting<'_, Self>, completion: Completion<()>) {
        let this = self.get_ref();
        let Some(shared) = &this.shared else { return };
        let executor = start.env().executor().clone();
        // SAFETY: `self` is pinned with its operation, which lives until the completion, the value of the
        // runnable, has ended (rule 2 of `Pending`). `begin` is called once, so there is one runnable.
        let runnable = unsafe { Posted::runnable(NonNull::from(&this.posted), Woken(completion)) };
        let after = shared.state().drain(Waiter { executor, runnable });
        if let AfterWait::Waits(ticket) = after {
            this.ticket.set(Some(ticket));
            start.listen(Withdraw { shared: shared.clone(), ticket });
        }
        after.resume_if_over();
    }

    fn finish(self: Pin<&mut Self>, outcome: Outcome<()>) -> Outcome<()> {
        let this = self.get_mut();
        let Some(shared) = this.shared.take() else { return outcome };
        let mut state = shared.state();
        let withdrawn = this.ticket.take().is_some_and(|ticket| state.was_withdrawn(ticket));
        match outcome.is_value() && !withdrawn {
            true => state.panic_for_drain().map_or(Outcome::Value(()), Outcome::Panicked),
            false => Outcome::Stopped,
        }
    }
}

/// The stop callback: it ends the wait, unless that has ended already.
#[derive(Debug)]
pub struct Withdraw {
    shared: FrameArc<SharedScope>,
    /// The key of the waiter.
    ticket: u64,
}

impl OnStop for Withdraw {
    fn on_stop(self, _: StopReason) {
        let waiter = self.shared.state().withdraw(self.ticket);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Drain")
    }
}

impl<R> fmt::Debug for UntilEmpty<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UntilEmpty")
    }
}
