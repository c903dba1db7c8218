//! `let_with_stop_source(f)`: work with its own stop source.

use super::scoped::{InScope, Scoped};
use crate::Sender;
use convoke_core::env::Changes;
use convoke_core::{Env, StopSource};

/// Makes a sender that creates a stop source when it starts, calls `f` with it, and runs the sender that `f`
/// returns in an environment that stops with that source. The source is a child of the surrounding
/// environment: a stop there stops the work too. The source may be stored and used at any time; after the
/// work has ended, a request has no effect.
///
/// - *Completes with* the outcome of the sender that `f` returns. If `f` panics: panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread that starts it, for `f`, then on the executors of the sender that `f` returns.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = let_with_stop_source(|source| {
///     just_from(move || source.request_stop(StopReason::Requested))
///         .let_value(|_| never::<u32>())
/// });
/// assert_eq!(sync_wait(sender), Outcome::Stopped);
/// ```
pub fn let_with_stop_source<F, S>(f: F) -> LetWithStopSource<F>
where
    F: FnOnce(StopSource) -> S + Send,
    S: Sender,
{
    InScope::new(OwnStopSource(f))
}

/// The sender of [`let_with_stop_source()`].
pub type LetWithStopSource<F> = InScope<OwnStopSource<F>>;

/// The scope of `let_with_stop_source`: the function that makes the work from its stop source.
#[derive(Clone, Debug)]
pub struct OwnStopSource<F>(F);

impl<F, S> Scoped for OwnStopSource<F>
where
    F: FnOnce(StopSource) -> S + Send,
    S: Sender,
{
    type Work = S;

    fn enter(self, around: &Env) -> (S, Changes) {
        let source = StopSource::child_of(&around.stop_token());
        let changes = Changes::new().stop_token(source.token());
        ((self.0)(source), changes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use crate::prelude::*;
    use crate::testing::{Connected, stopped_env};

    #[test]
    fn the_source_stops_the_work_and_nothing_around_it() {
        let around = StopSource::new();
        let stored = Mutex::new(None);
        let sender = let_with_stop_source(|source| {
            *stored.lock().unwrap() = Some(source);
            never::<i32>()
        });
        let outcome = Connected::stoppable(sender, &around).meanwhile(|running| {
            assert!(!running.is_complete());
            stored.lock().unwrap().take().unwrap().request_stop(StopReason::Named("enough"));
        });
        assert_eq!(outcome, Outcome::Stopped);
        assert!(!around.stop_requested());
    }

    #[test]
    fn a_stop_around_it_before_the_start_and_while_it_runs_reaches_the_work_with_its_reason() {
        let sender = let_with_stop_source(|source| just(source.stop_requested()));
        assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Value(true));
        let around = StopSource::new();
        let reason = || read_env(|env| env.stop().reason());
        let sender = let_with_stop_source(|_| never().let_stopped(reason));
        let outcome = Connected::stoppable(sender, &around).meanwhile(|running| {
            assert!(!running.is_complete());
            around.request_stop(StopReason::Shutdown);
        });
        assert_eq!(outcome, Outcome::Value(Some(StopReason::Shutdown)));
    }

    #[test]
    fn a_source_that_is_used_after_the_end_has_no_effect() {
        let sender = let_with_stop_source(just);
        let source = Connected::new(sender).outcome().unwrap();
        assert!(source.request_stop(StopReason::Requested));
    }
}
