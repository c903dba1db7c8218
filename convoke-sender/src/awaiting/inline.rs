//! Awaiting work that completes inline: the operation lives on the stack of the poll, and needs neither
//! memory nor a rendezvous.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::pin::Pin;
use core::ptr;
use std::sync::OnceLock;

use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::raw::Frame;
use convoke_core::raw::Operation;
use convoke_core::raw::abort_on_unwind;
use convoke_core::{Env, Outcome};

/// Runs the sender on the calling thread and returns its outcome.
#[inline(always)]
pub(super) fn run<S: Sender>(sender: S) -> OutcomeOf<S> {
    let outcome = Cell::new(None);
    {
        let receiver = InlineReceiver { outcome: &outcome };
        let mut operation = abort_on_unwind(|| sender.connect(receiver));
        // SAFETY: the operation stays on this stack until it has completed. That is the case when `start`
        // returns: `COMPLETES` is `Inline`, and rule 3 of `Sender` makes that true. It is started once.
        abort_on_unwind(|| unsafe { Pin::new_unchecked(&mut operation).start() });
    }
    outcome.take().expect("a sender whose `COMPLETES` is `Inline` has completed when `start` returns")
}

struct InlineReceiver<'a, V, E> {
    outcome: &'a Cell<Option<Outcome<V, E>>>,
}

// SAFETY: rule 3 of `Sender`: it is completed before `start` returns, on the thread that called `start`. It
// does not leave that thread, although `Receiver` requires `Send`.
unsafe impl<V, E> Send for InlineReceiver<'_, V, E> {}

impl<V, E> Receiver<V, E> for InlineReceiver<'_, V, E> {
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        self.outcome.set(Some(outcome));
    }

    fn env(&self) -> &Env {
        let env = Frame::current(|frame| match frame {
            Some(frame) => ptr::from_ref(frame.env()),
            None => ptr::from_ref(outside_all_tasks()),
        });
        // SAFETY: the owner of the frame, and its environment, outlive the poll in which this receiver is
        // completed.
        unsafe { &*env }
    }
}

/// Returns the environment of inline work that is awaited outside of any task.
fn outside_all_tasks() -> &'static Env {
    static ENV: OnceLock<Env> = OnceLock::new();
    ENV.get_or_init(Env::new)
}
