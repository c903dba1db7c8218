//! What the branches of `join`, `try_join` and `race` have in common: the region they run in, and what ended the whole early.

use core::marker::PhantomData;
use core::task::Context;

use convoke_core::{Outcome, Panic, StopReason};

use crate::region::Region;

/// What one kind of group makes of its branches' ends.
pub trait Rule {
    /// Why branches are asked to stop when the group is over.
    const REASON: StopReason;
    /// Whether a branch that was stopped ends the group: then there is nothing to wait for.
    const STOPPED_ENDS: bool;
    /// Whether a group without branches has all it needs.
    const EMPTY_IS_COMPLETE: bool;
    /// Whether a panic counts even after something else has ended the group.
    const PANIC_OUTRANKS: bool;
}

/// What becomes of the value of a branch: it is kept, as one of all, or ends the group.
pub trait Sort<T>: Rule {
    /// What is kept.
    type Kept;
    /// What ends the group.
    type Last;

    #[doc(hidden)]
    fn sort(value: T) -> Result<Self::Kept, Self::Last>;
}

/// See the head of this file.
#[derive(Debug)]
pub struct Group<M, L> {
    pub(super) region: Region,
    /// Nothing is waited for any more but that all end.
    pub(super) over: bool,
    /// A stop from around was heard in this poll.
    pub(super) heard: bool,
    pub(super) end: Option<End<L>>,
    pub(super) taken: bool,
    /// It has ended by the stopped door, and may be polled again, beside something that must not be dropped yet.
    pub(super) stopped: bool,
    _rule: PhantomData<fn() -> M>,
}

/// What ended a group early.
#[derive(Debug)]
pub(super) enum End<L> {
    Last(L),
    Panicked(Panic),
}

impl<M: Rule, L> Group<M, L> {
    pub(super) fn new() -> Self {
        Self {
            region: Region::new(),
            over: false,
            heard: false,
            end: None,
            taken: false,
            stopped: false,
            _rule: PhantomData,
        }
    }

    /// The group is polled. A stop callback that panics is a panic of the group.
    pub(super) fn listen(&mut self, cx: &Context<'_>) {
        let heard = Panic::catch(|| self.region.listen(cx));
        self.heard = heard.unwrap_or_else(|panic| {
            self.finish(Some(End::Panicked(panic)));
            true
        });
    }

    /// A branch has ended: what is to be kept of it.
    pub(super) fn ended<T>(&mut self, outcome: Outcome<T>) -> Option<M::Kept>
    where
        M: Sort<T, Last = L>,
    {
        match outcome {
            Outcome::Value(value) => match M::sort(value) {
                Ok(kept) => return Some(kept),
                Err(last) => self.finish(Some(End::Last(last))),
            },
            Outcome::Panicked(panic) => self.finish(Some(End::Panicked(panic))),
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped if M::STOPPED_ENDS => self.finish(None),
            Outcome::Stopped => {}
        }
        None
    }

    /// The group is over: the others are asked to stop.
    pub(super) fn finish(&mut self, end: Option<End<L>>) {
        let other = if self.is_outranked_by(&end) { core::mem::replace(&mut self.end, end) } else { end };
        // Dropping what came too late, and asking to stop, runs code of the program's.
        let dropped = Panic::catch(|| drop(other));
        self.over = true;
        let asked = Panic::catch(|| self.region.request_stop_after_around(M::REASON));
        if let Err(panic) = dropped.and(asked) {
            let end = Some(End::Panicked(panic));
            if self.is_outranked_by(&end) {
                self.end = end;
            }
        }
    }

    fn is_outranked_by(&self, end: &Option<End<L>>) -> bool {
        match (&self.end, end) {
            (None, _) => true,
            (Some(End::Last(_)), Some(End::Panicked(_))) => M::PANIC_OUTRANKS,
            _ => false,
        }
    }
}
