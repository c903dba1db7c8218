//! `let_with(make, f)`: state that lives as long as the work.

use std::sync::Arc;

use super::continuation::{Continuation, Sequenced, Step};
use super::finally::Finally;
use super::just::{Just, just};
use super::just_from::{JustFrom, just_from};
use super::then::Then;
use super::within::WithShared;
use crate::Sender;
use convoke_core::{Never, Outcome};

/// Makes a sender that calls `make` when it starts, and runs the sender that `f` makes from a handle to the
/// result of `make`. This state lives at least until that work has ended, and is dropped before the outcome
/// is passed on, unless another handle still exists.
///
/// The state is shared by an `Arc`, one allocation: the work may hold its handle for longer than it runs, so
/// a reference would not be sound. Use `within` if the state must be closed asynchronously.
///
/// - *Completes with* the outcome of the sender that `f` returns. If `make`, `f` or the destructor of the
///   state panics: panicked.
/// - *If dropped* before it starts, `make` and `f` are dropped uncalled.
/// - *Runs on* the thread that starts it, for `make` and `f`, then on the executors of the sender that `f`
///   returns.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use convoke::sender::prelude::*;
///
/// let sender = let_with(|| AtomicU32::new(40), |counter| {
///     let again = counter.clone();
///     just_from(move || counter.fetch_add(1, Ordering::Relaxed))
///         .then(move |_| again.fetch_add(1, Ordering::Relaxed) + 1)
/// });
/// assert_eq!(sync_wait(sender), Outcome::Value(42));
/// ```
pub fn let_with<M, T, F, S>(make: M, f: F) -> LetWith<M, F>
where
    M: FnOnce() -> T + Send,
    T: Send + Sync,
    F: FnOnce(Arc<T>) -> S + Send,
    S: Sender,
    S::Value: Send,
    S::Error: Send,
{
    Sequenced::new(just_from(make), OnMade(f))
}

/// The sender of [`let_with()`].
pub type LetWith<M, F> = Sequenced<JustFrom<M>, OnMade<F>>;

/// The continuation of `let_with`: from the state.
#[derive(Clone, Debug)]
pub struct OnMade<F>(F);

impl<T, F, S> Continuation<T, Never> for OnMade<F>
where
    T: Send + Sync,
    F: FnOnce(Arc<T>) -> S + Send,
    S: Sender,
    S::Value: Send,
    S::Error: Send,
{
    type Next = Finally<WithShared<T, S::Error, F>, Then<Just<Arc<T>>, fn(Arc<T>)>>;

    fn step(self, outcome: Outcome<T>) -> Step<Self::Next> {
        Step::from_value(outcome.map_error(Never::absurd), |state| {
            let state = Arc::new(state);
            let work = just(state.clone()).may_fail().let_value(self.0);
            work.finally(just(state).then(drop as fn(Arc<T>)))
        })
    }
}

#[cfg(test)]
mod tests {

    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_outcomes};

    #[test]
    fn lets_every_door_pass_and_shows_the_state() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let work = |state: std::sync::Arc<i32>| sender.then(move |v| v + *state);
            assert_eq!(Connected::new(let_with(|| 5, work)).outcome(), outcome.map(|v| v + 5));
        }
    }

    #[test]
    fn the_state_lives_until_the_work_has_ended_and_goes_before_the_outcome() {
        let count = DropCount::new();
        let gate = Gate::<i32>::new();
        // The work drops its handle at once: the state lives all the same.
        let sender = let_with(|| count.token(), |_| gate.sender()).then(|v| (v, count.dropped()));
        let outcome = Connected::new(sender).meanwhile(|_| {
            assert_eq!(count.dropped(), 0);
            gate.complete(Outcome::Value(1));
        });
        assert_eq!(outcome, Outcome::Value((1, 1)));
    }

    #[test]
    fn a_handle_that_is_stored_keeps_the_state_alive() {
        let count = DropCount::new();
        let state = Connected::new(let_with(|| count.token(), just)).outcome().unwrap();
        assert_eq!(count.dropped(), 0);
        drop(state);
        assert_eq!(count.dropped(), 1);
    }

    #[test]
    fn a_panic_of_either_function_or_of_the_destructor_is_the_outcome() {
        let boom = || Outcome::Panicked(Panic::new("boom"));
        let sender = let_with(|| -> i32 { Panic::new("boom").resume() }, |_| just(1));
        assert_eq!(Connected::new(sender).outcome(), boom());
        let count = DropCount::new();
        let sender = let_with(|| count.token(), |_| -> Just<i32> { Panic::new("boom").resume() });
        assert_eq!(Connected::new(sender).outcome(), boom());
        assert_eq!(count.dropped(), 1);

        struct PanicsInDrop;
        impl Drop for PanicsInDrop {
            fn drop(&mut self) {
                Panic::new("boom").resume();
            }
        }
        assert_eq!(Connected::new(let_with(|| PanicsInDrop, |_| just(1))).outcome(), boom());
    }
}
