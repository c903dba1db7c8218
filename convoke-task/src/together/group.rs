//! The state that the branches of `join`, `try_join` and `race` share: their region, and what ended them early.

use core::marker::PhantomData;
use core::task::Context;

use convoke_core::raw::Frame;
use convoke_core::{Outcome, Panic, StopReason};

use crate::region::Region;

/// Rule of a group: what the ends of its branches mean.
pub trait Rule {
    /// Reason with which branches are asked to stop when the group is over.
    const REASON: StopReason;
    /// True if a branch that was stopped ends the group.
    const STOPPED_ENDS: bool;
    /// True if a group without branches is complete.
    const EMPTY_IS_COMPLETE: bool;
    /// True if a panic replaces a value that has ended the group.
    const PANIC_OUTRANKS: bool;
}

/// Rule for the value of a branch: it is part of the group's output, or ends the group.
pub trait Sort<T>: Rule {
    /// Part of the output.
    type Kept;
    /// Value that ends the group.
    type Last;

    #[doc(hidden)]
    fn sort(value: T) -> Result<Self::Kept, Self::Last>;
}

/// State that the branches of a group share.
#[derive(Debug)]
pub struct Group<M, L> {
    pub(super) region: Region,
    pub(super) progress: Progress<M, L>,
}

/// Progress of a group. Apart from the region, which the branches borrow while they are polled.
#[derive(Debug)]
pub(super) struct Progress<M, L> {
    pub(super) end: Option<End<L>>,
    /// The result is decided; the branches only have to end.
    pub(super) over: bool,
    /// A stop request from outside was seen for the first time in this poll.
    pub(super) heard: bool,
    pub(super) stage: Stage,
    /// The branch of a tuple that is polled first: the one at which the budget of the last poll was spent. So
    /// a busy branch does not starve those behind it.
    pub(super) first: u8,
    _rule: PhantomData<fn() -> M>,
}

/// Stage of a group, as its owner polls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Never polled with budget left.
    New,
    Begun,
    /// The result was returned.
    Taken,
    /// The group ended as stopped. It may be polled again, by a combinator that still has to finish another
    /// branch.
    Stopped,
}

/// Early end of a group.
#[derive(Debug)]
pub(super) enum End<L> {
    Last(L),
    Panicked(Panic),
}

impl<M: Rule, L> Group<M, L> {
    #[inline]
    pub(super) fn new() -> Self {
        let progress = Progress {
            end: None,
            over: false,
            heard: false,
            stage: Stage::New,
            first: 0,
            _rule: PhantomData,
        };
        Self { region: Region::new(), progress }
    }

    /// Checks for a stop request from outside. A panic of a stop callback is a panic of the group.
    #[inline]
    pub(super) fn listen(&mut self, frame: &Frame<'_>, cx: &Context<'_>) {
        self.progress.heard = false;
        if !Region::need_not_listen(frame, cx) {
            self.listen_out_of_line(frame, cx);
        }
    }

    #[inline(never)]
    fn listen_out_of_line(&mut self, frame: &Frame<'_>, cx: &Context<'_>) {
        let region = &mut self.region;
        let heard = Panic::catch(|| region.listen_in(frame, cx));
        self.progress.heard = heard.unwrap_or_else(|panic| {
            self.progress.finish(&self.region, Some(End::Panicked(panic)));
            true
        });
    }

    /// Takes the outcome of a branch. Returns its part of the output, if it has one.
    pub(super) fn ended<T>(&mut self, outcome: Outcome<T>) -> Option<M::Kept>
    where
        M: Sort<T, Last = L>,
    {
        self.progress.ended(&self.region, outcome)
    }
}

impl<M: Rule, L> Progress<M, L> {
    /// Takes the outcome of a branch. Returns its part of the output, if it has one.
    pub(super) fn ended<T>(&mut self, region: &Region, outcome: Outcome<T>) -> Option<M::Kept>
    where
        M: Sort<T, Last = L>,
    {
        match outcome {
            Outcome::Value(value) => match M::sort(value) {
                Ok(value) => return Some(value),
                Err(last) => self.finish(region, Some(End::Last(last))),
            },
            Outcome::Panicked(panic) => self.finish(region, Some(End::Panicked(panic))),
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped if M::STOPPED_ENDS => self.finish(region, None),
            Outcome::Stopped => {}
        }
        None
    }

    /// Ends the group early, and asks the other branches to stop.
    pub(super) fn finish(&mut self, region: &Region, end: Option<End<L>>) {
        let other = if self.is_outranked_by(&end) { core::mem::replace(&mut self.end, end) } else { end };
        // Dropping a late value, and requesting the stop, may run foreign code that panics.
        let dropped = Panic::catch(|| drop(other));
        self.over = true;
        let asked = Panic::catch(|| region.request_stop_after_around(M::REASON));
        if let Err(panic) = dropped.and(asked) {
            let end = Some(End::Panicked(panic));
            if self.is_outranked_by(&end) {
                self.end = end;
            }
        }
    }

    /// Returns true if `end` replaces the end that is stored.
    fn is_outranked_by(&self, end: &Option<End<L>>) -> bool {
        match (&self.end, end) {
            (None, _) => true,
            (Some(End::Last(_)), Some(End::Panicked(_))) => M::PANIC_OUTRANKS,
            _ => false,
        }
    }
}
