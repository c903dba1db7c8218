//! `write_env(changes)`: runs the work in a changed environment.

use super::scoped::{InScope, Scoped};
use crate::Sender;
use convoke_core::env::Changes;
use convoke_core::{Env, ExecutorRef, FrameAllocator};

/// Runs the work in an environment that differs from the surrounding one by `changes`.
///
/// - *Completes with* the outcome of the sender.
/// - *If dropped* before it starts, the sender and the changes are dropped.
/// - *Runs on* the thread that starts it, then on the executors of the sender. A change of the executor moves
///   nothing: the sender only sees another one in its environment. Use `starts_on` to move work.
///
/// ```
/// use convoke::env::{Changes, Local};
/// use convoke::sender::prelude::*;
///
/// static TENANT: Local<&str> = Local::inherited("tenant");
///
/// let blue = Changes::new().local(&TENANT, "blue");
/// let sender = read_env(|env| env.local(&TENANT).copied()).write_env(blue);
/// assert_eq!(sync_wait(sender), Outcome::Value(Some("blue")));
/// ```
pub type WriteEnv<S> = InScope<GivenChanges<S>>;

/// The scope of `write_env`: a sender, and the changes.
#[derive(Debug)]
pub struct GivenChanges<S> {
    pub(crate) sender: S,
    pub(crate) changes: Changes,
}

impl<S: Sender> Scoped for GivenChanges<S> {
    type Work = S;
    const OTHER_EXECUTOR: bool = true;

    #[inline]
    fn enter(self, _: &Env) -> (S, Changes) {
        (self.sender, self.changes)
    }

    fn completes_on(&self, around: &Env) -> Option<ExecutorRef> {
        match self.changes.new_executor() {
            Some(told) => self.sender.completes_on(&around.with(Changes::new().executor(told.clone()))),
            None => self.sender.completes_on(around),
        }
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        self.changes.new_allocator().or_else(|| self.sender.allocator())
    }
}

#[cfg(test)]
mod tests {
    use crate::Completes;
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, completes_of};
    use convoke_core::env::{Changes, Local};
    use convoke_core::{Env, InlineExecutor};

    static TENANT: Local<&'static str> = Local::inherited("tenant");

    fn blue() -> Changes {
        Changes::new().local(&TENANT, "blue")
    }

    #[test]
    fn the_sender_sees_the_changes_and_the_work_after_it_does_not() {
        let tenant = || read_env(|env| env.local(&TENANT).copied());
        let sender =
            tenant().write_env(blue()).let_value(|inside| tenant().then(move |after| (inside, after)));
        assert_eq!(Connected::new(sender).outcome(), Outcome::Value((Some("blue"), None)));
    }

    #[test]
    fn where_it_completes_is_where_the_sender_completes() {
        let (around, told) = (ByHand::new(), ByHand::new());
        let env = Env::from(around.clone());
        let inline = just(1).write_env(Changes::new().executor(told.clone()));
        assert_eq!(completes_of(&inline), Completes::Inline);
        assert!(inline.completes_on(&env).unwrap().is(&around));
        let there_and_back = just(1).on(&InlineExecutor).write_env(Changes::new().executor(told.clone()));
        assert_eq!(completes_of(&there_and_back), Completes::Anywhere);
        assert!(there_and_back.completes_on(&env).unwrap().is(&told));
    }

    #[test]
    fn dropping_it_unstarted_drops_sender_and_changes() {
        static COUNTED: Local<crate::testing::DropToken> = Local::not_inherited("counted");
        let count = DropCount::new();
        let changes = Changes::new().local(&COUNTED, count.token());
        drop(Connected::new(Gate::<i32>::new().holding(count.token()).write_env(changes)));
        assert_eq!(count.dropped(), 2);
    }
}
