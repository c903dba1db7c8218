//! `unstoppable()`: shields the work from stop requests.

use super::scoped::{InScope, Scoped};
use crate::Sender;
use convoke_core::env::Changes;
use convoke_core::{Env, ExecutorRef, FrameAllocator, StopToken};

/// Runs the work in an environment that is never asked to stop. A stop of the surrounding work waits for this
/// work to end: shield only work that is short and must be done.
///
/// - *Completes with* the outcome of the sender.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the thread that starts it, then on the executors of the sender.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = read_env(|env| env.stop().stop_possible()).unstoppable();
/// assert_eq!(sync_wait(sender), Outcome::Value(false));
/// ```
pub type Unstoppable<S> = InScope<Shielded<S>>;

/// The scope of `unstoppable`: the sender that is shielded.
#[derive(Clone, Debug)]
pub struct Shielded<S>(pub(crate) S);

impl<S: Sender> Scoped for Shielded<S> {
    type Work = S;

    #[inline]
    fn enter(self, _: &Env) -> (S, Changes) {
        (self.0, Changes::new().stop_token(StopToken::never()))
    }

    fn completes_on(&self, around: &Env) -> Option<ExecutorRef> {
        self.0.completes_on(around)
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        self.0.allocator()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, stopped_env};

    #[test]
    fn a_stop_before_the_start_is_not_seen() {
        let sender = read_env(|env| env.stop().stop_requested()).unstoppable();
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Value(false));
    }
}
