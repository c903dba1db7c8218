//! `with_env(f)`: runs the work in an environment that a function computes.

use super::scoped::{InScope, Scoped};
use crate::Sender;
use convoke_core::Env;
use convoke_core::env::Changes;

/// Runs the work in an environment that differs from the surrounding one by the changes that a function
/// returns. The function is called at the start, with the surrounding environment.
///
/// - *Completes with* the outcome of the sender. If `f` panics: panicked, and the sender is not started.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread that starts it, then on the executors of the sender. A change of the executor moves
///   nothing: the sender only sees another one in its environment. Use `starts_on` to move work.
///
/// ```
/// use convoke::env::{Changes, Local};
/// use convoke::sender::prelude::*;
///
/// static DEPTH: Local<u32> = Local::inherited("depth");
///
/// let depth = |env: &Env| env.local(&DEPTH).copied().unwrap_or(0);
/// let deeper = |env: &Env| Changes::new().local(&DEPTH, depth(env) + 1);
/// let sender = read_env(|env| env.local(&DEPTH).copied());
/// let sender = sender.with_env(deeper).with_env(deeper);
/// assert_eq!(sync_wait(sender), Outcome::Value(Some(2)));
/// ```
pub type WithEnv<S, F> = InScope<ComputedChanges<S, F>>;

/// The scope of `with_env`: a sender, and the function that computes the changes.
#[derive(Clone, Debug)]
pub struct ComputedChanges<S, F> {
    pub(crate) sender: S,
    pub(crate) f: F,
}

impl<S, F> Scoped for ComputedChanges<S, F>
where
    S: Sender,
    F: FnOnce(&Env) -> Changes + Send,
{
    type Work = S;
    const OTHER_EXECUTOR: bool = true;

    fn enter(self, around: &Env) -> (S, Changes) {
        let changes = (self.f)(around);
        (self.sender, changes)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected};
    use convoke_core::Env;
    use convoke_core::env::{Changes, Local};

    static DEPTH: Local<u32> = Local::inherited("depth");

    #[test]
    fn the_function_sees_the_environment_around_and_the_sender_the_changed_one() {
        let deeper = |env: &Env| Changes::new().local(&DEPTH, env.local(&DEPTH).map_or(1, |depth| depth + 1));
        let sender = read_env(|env| env.local(&DEPTH).copied()).with_env(deeper).with_env(deeper);
        let env = Env::new().with(Changes::new().local(&DEPTH, 10));
        assert_eq!(Connected::with_env(sender, env).outcome(), Outcome::Value(Some(12)));
    }

    #[test]
    fn what_is_not_changed_is_that_of_the_environment_around() {
        let by_hand = ByHand::new();
        let sender =
            read_env(|env| env.executor().is(&by_hand)).with_env(|_| Changes::new().local(&DEPTH, 1));
        assert_eq!(Connected::with_env(sender, Env::from(by_hand.clone())).outcome(), Outcome::Value(true));
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome_and_the_sender_is_not_started() {
        let sender = just_from(|| unreachable!()).with_env(|_| panic!("boom"));
        assert_eq!(Connected::new(sender).outcome(), Outcome::<()>::Panicked(Panic::new("boom")));
    }

    #[test]
    fn a_token_of_its_own_is_what_stops_it() {
        let (around, own) = (StopSource::new(), StopSource::new());
        let sender = never::<i32>().with_env(|_| Changes::new().stop_token(own.token()));
        let outcome = Connected::stoppable(sender, &around).meanwhile(|running| {
            around.request_stop(StopReason::Requested);
            assert!(!running.is_complete());
            own.request_stop(StopReason::Requested);
        });
        assert_eq!(outcome, Outcome::Stopped);
    }
}
