//! `join`: closes a scope when it starts, and waits for all work in the scope.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use crate::operation::{Absent, Posted, Posts, Serial, SerialTurn, Steps};
use crate::{Completes, Receiver, Sender};
use convoke_core::raw::Call;
use convoke_core::raw::FrameArc;
use convoke_core::{Never, Outcome};

use super::shared::SharedScope;
use super::state::Waiter;

/// The sender of [`join`](super::CountingScope::join).
#[must_use = "a scope is closed and waited for when its join is started, not before"]
pub struct JoinScope {
    shared: FrameArc<SharedScope>,
}

impl JoinScope {
    pub(super) fn new(shared: FrameArc<SharedScope>) -> Self {
        Self { shared }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the only runnable completes the receiver, last. Rule 3: it is run in
// `start`, or posted to the executor of the environment.
#[diagnostic::do_not_recommend]
unsafe impl Sender for JoinScope {
    type Value = ();
    type Error = Never;
    const COMPLETES: Completes = Completes::Here;
    type Operation<R: Receiver<(), Never>> = JoinScopeOperation<R>;

    fn connect<R: Receiver<(), Never>>(self, receiver: R) -> JoinScopeOperation<R> {
        let steps = JoinSteps { shared: Some(self.shared), _receiver: PhantomData };
        Serial::new(steps, Posted::new(), receiver)
    }
}

crate::awaitable!([] JoinScope);

/// The operation of [`JoinScope`]: it contains the unit of work that the last work to leave posts.
pub type JoinScopeOperation<R> = Serial<JoinSteps<R>>;

/// The steps of [`JoinScope`]: wait in the state of the scope, then complete.
pub struct JoinSteps<R> {
    /// Taken at the end.
    shared: Option<FrameArc<SharedScope>>,
    _receiver: PhantomData<R>,
}

impl<R: Receiver<(), Never>> Steps for JoinSteps<R> {
    type Work = Absent<(), Never>;
    type Value = ();
    type Error = Never;
    type Receiver = R;
    type Next = Absent<(), Never>;
    type Shared = Posted<SerialTurn<Self>>;

    fn start(mut turn: SerialTurn<Self>) {
        // Our own clone: the turn is in the state from `join` on.
        let Some(shared) = turn.parts().shared.clone() else { return };
        let executor = turn.receiver().env().executor().clone();
        let waiter = Waiter { executor, runnable: turn.into_runnable() };
        let after = shared.state().join(waiter);
        drop(shared);
        after.resume_if_over();
    }

    fn ended(turn: SerialTurn<Self>, outcome: Outcome<()>) {
        turn.complete(outcome);
    }
}

impl<R: Receiver<(), Never>> Posts for JoinSteps<R> {
    fn resumed(mut turn: SerialTurn<Self>, call: Call) {
        let Some(shared) = turn.parts().shared.take() else { return };
        let outcome = match shared.state().panic_for_join() {
            Some(panic) => Outcome::Panicked(panic),
            None if call == Call::Stop => Outcome::Stopped,
            None => Outcome::Value(()),
        };
        // Before the completion: the receiver may rely on it that nothing of the scope is left.
        drop(shared);
        turn.complete(outcome);
    }
}

impl fmt::Debug for JoinScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinScope")
    }
}

impl<R> fmt::Debug for JoinSteps<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinSteps")
    }
}
