//! The state that the branches of `join`, `try_join` and `race` share: their region, and what ended them early.

use core::marker::PhantomData;
use core::task::Context;

use convoke_core::raw::{DropOutOfLine, Frame, LastUse};
use convoke_core::{Outcome, Panic, StopReason};

use crate::region::PlainRegion;

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
    pub(super) region: PlainRegion,
    pub(super) progress: Progress<M, L>,
}

/// Progress of a group. Apart from the region, which the branches borrow while they are polled.
#[derive(Debug)]
pub(super) struct Progress<M, L> {
    pub(super) end: Option<End<L>>,
    /// The result is decided; the branches only have to end.
    pub(super) over: bool,
    pub(super) stage: Stage,
    /// Notes of the last poll of a tuple for the next one.
    pub(super) order: Order,
    _rule: PhantomData<fn() -> M>,
}

/// Notes of a poll of a tuple for the next one: mostly none. In one word, so that one test tells.
///
/// The upper bits have the index of the branch that is polled first: the one at which the budget was spent. So a busy branch
/// does not starve those behind it. The lower bits have the flags of the frames of the branches, one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order(u16);

impl Order {
    const FLAGS: u32 = 12;

    /// The first branch is polled first, and nothing in a branch has stopped.
    const REGULAR: Self = Self(0);

    #[inline]
    pub(super) fn is_regular(self) -> bool {
        self == Self::REGULAR
    }

    /// Returns the branch that is polled first.
    pub(super) fn first(self) -> u8 {
        (self.0 >> Self::FLAGS) as u8
    }

    /// Sets the branch that is polled first.
    pub(super) fn set_first(&mut self, branch: u8) {
        self.0 = (self.0 % (1 << Self::FLAGS)) | (u16::from(branch) << Self::FLAGS);
    }

    /// Returns the flag of the frame of a branch: true if a future in it has stopped.
    pub(super) fn has_stopped(self, branch: u8) -> bool {
        self.0 & 1 << branch != 0
    }

    /// Sets the flag of the frame of a branch.
    pub(super) fn set_stopped(&mut self, branch: u8) {
        self.0 |= 1 << branch;
    }
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

impl<M, L> DropOutOfLine for Group<M, L> {
    #[cold]
    #[inline(never)]
    fn drop_out_of_line(group: LastUse<'_, Self>) {
        group.drop_here();
    }

    #[inline(always)]
    fn has_something_to_drop(&mut self) -> bool {
        self.region.has_something_to_drop() || self.progress.end.is_some()
    }
}

impl<M: Rule, L> Group<M, L> {
    #[inline]
    pub(super) fn new() -> Self {
        let progress =
            Progress { end: None, over: false, stage: Stage::New, order: Order::REGULAR, _rule: PhantomData };
        Self { region: PlainRegion::new(), progress }
    }

    /// Checks for a stop request from outside. Returns true if it is new. A panic of a stop callback is a panic of the
    /// group.
    #[inline]
    pub(super) fn listen(&mut self, frame: &Frame<'_>, cx: &Context<'_>) -> bool {
        !PlainRegion::need_not_listen(frame, cx) && self.listen_out_of_line(frame, cx)
    }

    #[inline(never)]
    fn listen_out_of_line(&mut self, frame: &Frame<'_>, cx: &Context<'_>) -> bool {
        let region = &mut self.region;
        let heard = Panic::catch(|| region.listen_in(frame, cx));
        heard.unwrap_or_else(|panic| {
            self.progress.finish(&self.region, Some(End::Panicked(panic)));
            true
        })
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
    pub(super) fn ended<T>(&mut self, region: &PlainRegion, outcome: Outcome<T>) -> Option<M::Kept>
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
    pub(super) fn finish(&mut self, region: &PlainRegion, end: Option<End<L>>) {
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
