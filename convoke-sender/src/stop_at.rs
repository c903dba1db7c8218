//! `deadline_after(duration, sender)` and `deadline_at(instant, sender)`: work with a deadline.

use std::time::{Duration, Instant};

use crate::Sender;
use crate::algorithm::scoped::{InScope, Scoped};
use crate::algorithm::stop_when::StopWhen;
use crate::algorithm::transform::{Transform, Transformed};
use convoke_core::env::Changes;
use convoke_core::{Env, Outcome, StopReason, StopSource};

use convoke_exec::raw::When;
use convoke_exec::time::{Sleep, sleep, sleep_until, timers_of};

/// Makes a sender whose work is asked to stop, with [`StopReason::Deadline`], when `duration` has passed
/// since its start. Use [`deadline_at()`] if the deadline is a point in time.
///
/// - *Completes with* the outcome of the work.
/// - *If dropped* before it starts, the work is dropped.
/// - *Runs on* the executors of the work; the stop is requested on the executor of the surrounding
///   environment.
///
/// ```
/// use std::time::Duration;
/// use convoke::sender::prelude::*;
/// use convoke::sender::deadline_after;
///
/// let in_time = deadline_after(Duration::from_secs(3600), just("done"));
/// assert_eq!(sync_wait(in_time), Outcome::Value("done"));
///
/// let too_slow = deadline_after(Duration::from_millis(1), never::<u32>());
/// assert_eq!(sync_wait(too_slow), Outcome::Stopped);
/// ```
pub fn deadline_after<S>(duration: Duration, sender: S) -> StopAt<S>
where
    S: Sender<Value: Send, Error: Send>,
{
    InScope::new(Deadline { sender, when: When::After(duration) })
}

/// Makes a sender whose work is asked to stop, with [`StopReason::Deadline`], at `instant`. The work sees the
/// deadline in its stop token: the earlier one of `instant` and the deadline of the surrounding environment.
/// Use [`deadline_after()`] if the deadline is relative to the start.
///
/// - *Completes with* the outcome of the work, when the work has ended: stopped if it honours the request,
///   panicked if a stop callback panics.
/// - *If dropped* before it starts, the work is dropped.
/// - *Runs on* the executors of the work; the stop is requested on the executor of the surrounding
///   environment. If the deadline has already passed, the stop is requested before the work starts.
///
/// ```
/// use std::time::{Duration, Instant};
/// use convoke::sender::prelude::*;
/// use convoke::sender::{deadline_after, deadline_at};
///
/// let at = Instant::now() + Duration::from_millis(1);
/// let stop = || read_env(|env| (env.stop().reason(), env.stop().deadline()));
/// let work = never().let_stopped(stop);
/// let bounded = deadline_after(Duration::from_secs(3600), deadline_at(at, work));
/// let expected = (Some(StopReason::Deadline), Some(at));
/// assert_eq!(sync_wait(bounded), Outcome::Value(expected));
/// ```
pub fn deadline_at<S>(instant: Instant, sender: S) -> StopAt<S>
where
    S: Sender<Value: Send, Error: Send>,
{
    InScope::new(Deadline { sender, when: When::At(instant) })
}

/// The sender of [`deadline_at()`] and [`deadline_after()`].
pub type StopAt<S> = InScope<Deadline<S>>;

/// The scope of a deadline: the sender, and the time when it is asked to stop.
#[derive(Clone, Debug)]
pub struct Deadline<S> {
    sender: S,
    when: When,
}

impl<S> Scoped for Deadline<S>
where
    S: Sender<Value: Send, Error: Send>,
{
    type Work = StopWhen<S, Transformed<Sleep, AskToStop>>;

    fn enter(self, around: &Env) -> (Self::Work, Changes) {
        let now = timers_of(around).now();
        let parent = around.stop_token();
        let source = match self.when.from(now) {
            Some(at) => StopSource::child_with_deadline(&parent, at),
            None => StopSource::child_of(&parent),
        };
        let deadline = source.token().deadline();
        if deadline.is_some_and(|at| at <= now) {
            // Requested before the work starts, not right after.
            source.request_stop(StopReason::Deadline);
        }
        let changes = Changes::new().stop_token(source.token());
        let timeout = deadline.map_or(sleep(Duration::MAX), sleep_until);
        (self.sender.stop_when(Transformed::new(timeout, AskToStop { source })), changes)
    }
}

/// The transformation that requests a stop when the deadline has come.
#[derive(Debug)]
pub struct AskToStop {
    source: StopSource,
}

impl<E> Transform<(), E> for AskToStop {
    type Value = ();
    type Error = E;

    fn apply(self, outcome: Outcome<(), E>) -> Outcome<(), E> {
        outcome.map(|()| {
            self.source.request_stop(StopReason::Deadline);
        })
    }
}
