//! Tuples of futures, stored in place without allocation. Every future that has not ended is polled each time.

use core::cell::Cell;
use core::future::{Future, IntoFuture};
use core::hint::cold_path;
use core::pin::Pin;
use core::task::Context;

use convoke_core::raw::{Frame, Polled, budget};
use convoke_core::{Outcome, Panic};
use pin_project_lite::pin_project;

use super::branches::{BranchSlots, Branches};
use super::group::{End, Group, Progress, Rule, Sort};
use crate::region::Several;

pin_project! {
    /// Slot of one branch: first the future, then its part of the output.
    #[derive(Debug)]
    #[project = Contents]
    #[project_replace = Replaced]
    pub enum Slot<F, K> {
        Running {
            #[pin]
            body: F,
        },
        Ended { value: K },
        // The future has ended, and the output has no part of it; or that was taken.
        Empty,
    }
}

impl<F: Future, K> Slot<F, K> {
    #[inline]
    fn new(body: F) -> Self {
        Self::Running { body }
    }

    /// Polls the branch with this index, if it has not ended. Returns true if it still runs. A branch that was never
    /// polled is polled also if the group is over, with the stop requested: it may own a resource that has to be closed.
    // Always: the branch is polled here mostly.
    #[inline(always)]
    fn poll<M, L>(
        mut self: Pin<&mut Self>,
        index: u8,
        several: Several<'_>,
        progress: &mut Progress<M, L>,
        cx: &mut Context<'_>,
    ) -> bool
    where
        M: Sort<F::Output, Kept = K, Last = L>,
    {
        let Contents::Running { body } = self.as_mut().project() else { return false };
        let outcome: Outcome<F::Output> = match Panic::catch(|| several.poll(body, cx)) {
            Ok(Polled::Pending) => {
                if several.has_stopped() {
                    progress.order.set_stopped(index);
                }
                return true;
            }
            Ok(Polled::Ready(value)) => Outcome::Value(value),
            Ok(Polled::Stopped) => Outcome::Stopped,
            Err(panic) => Outcome::Panicked(panic),
        };
        // The body is dropped in its frame, before its outcome counts.
        let outcome = match Panic::catch(|| self.set(Self::Empty)) {
            Ok(()) => outcome,
            Err(panic) => outcome.or_panic(panic),
        };
        let end = match outcome {
            Outcome::Value(value) => match M::sort(value) {
                Ok(value) => {
                    self.set(Self::Ended { value });
                    return false;
                }
                Err(last) => Some(End::Last(last)),
            },
            Outcome::Panicked(panic) => Some(End::Panicked(panic)),
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped if M::STOPPED_ENDS => None,
            Outcome::Stopped => return false,
        };
        several.outside(|region| progress.finish(region, end));
        false
    }

    /// Polls the branch as [`poll`](Slot::poll) does: for polls that are rare.
    #[cold]
    #[inline(never)]
    fn poll_out_of_line<M, L>(
        self: Pin<&mut Self>,
        index: u8,
        several: Several<'_>,
        progress: &mut Progress<M, L>,
        cx: &mut Context<'_>,
    ) -> bool
    where
        M: Sort<F::Output, Kept = K, Last = L>,
    {
        several.renew(progress.order.has_stopped(index));
        self.poll(index, several, progress, cx)
    }

    #[inline]
    fn take(mut self: Pin<&mut Self>) -> Option<K> {
        let Contents::Ended { .. } = self.as_mut().project() else { return None };
        match self.project_replace(Self::Empty) {
            Replaced::Ended { value } => Some(value),
            Replaced::Running { .. } | Replaced::Empty => None,
        }
    }
}

macro_rules! tuples {
    ($($slots:ident($($future:ident $value:ident $at:tt $field:ident)+))+) => { $(
        pin_project! {
            /// Slots of a tuple of branches.
            #[derive(Debug)]
            pub struct $slots<$($future,)+ $($value,)+> {
                $(#[pin] $field: Slot<$future, $value>,)+
            }
        }

        #[diagnostic::do_not_recommend]
        impl<M, L, $($future),+> Branches<M> for ($($future,)+)
        where
            M: Rule $(+ Sort<$future::Output, Last = L>)+,
            $($future: IntoFuture,)+
        {
            type Slots =
                $slots<$($future::IntoFuture,)+ $(<M as Sort<$future::Output>>::Kept,)+>;
            type Last = L;

            #[inline]
            fn slots(self) -> Self::Slots {
                $slots { $($field: Slot::new(self.$at.into_future()),)+ }
            }
        }

        #[diagnostic::do_not_recommend]
        impl<M, L, $($future,)+ $($value,)+> BranchSlots<M, L> for $slots<$($future,)+ $($value,)+>
        where
            M: Rule $(+ Sort<$future::Output, Kept = $value, Last = L>)+,
            $($future: Future,)+
        {
            type Output = ($($value,)+);

            #[inline]
            fn poll(
                self: Pin<&mut Self>,
                group: &mut Group<M, L>,
                _: bool,
                frame: &Frame<'_>,
                cx: &mut Context<'_>,
            ) -> bool {
                let mut slots = self.project();
                let Group { region, progress } = group;
                let (held, stopped) = (frame.held(), Cell::new(false));
                region.poll_several(frame, &stopped, |several| {
                    if progress.order.is_regular() {
                        let (over, mut waits, mut spent_at) = (progress.over, false, None);
                        $(
                            if !budget::has_left() {
                                cold_path();
                                spent_at = spent_at.or(Some($at));
                            }
                            if $at > 0 {
                                several.renew(false);
                            }
                            waits |= slots.$field.as_mut().poll($at, several, progress, cx);
                        )+
                        if let Some(at) = spent_at {
                            progress.order.set_first(at);
                        }
                        if !waits || progress.over == over {
                            return !waits;
                        }
                    }
                    // Polled in another order, or again: branches that were polled before the one that ended the
                    // group must hear of the stop.
                    loop {
                        let first = progress.order.first();
                        let (over, mut waits, mut spent_at) = (progress.over, false, None);
                        for is_before_first in [false, true] {
                            $(if ($at < first) == is_before_first {
                                if !budget::has_left() {
                                    spent_at = spent_at.or(Some($at));
                                }
                                waits |= slots.$field.as_mut().poll_out_of_line($at, several, progress, cx);
                            })+
                        }
                        progress.order.set_first(spent_at.unwrap_or(0));
                        if !waits {
                            // Some branches were polled twice, and their first poll may have held the task.
                            frame.restore_held(held);
                            return true;
                        }
                        if progress.over == over {
                            return false;
                        }
                    }
                })
            }

            #[inline]
            fn take(self: Pin<&mut Self>) -> Option<Self::Output> {
                let slots = self.project();
                Some(($(slots.$field.take()?,)+))
            }
        }
    )+ };
}

tuples! {
    Slots1(A Ka 0 a)
    Slots2(A Ka 0 a B Kb 1 b)
    Slots3(A Ka 0 a B Kb 1 b C Kc 2 c)
    Slots4(A Ka 0 a B Kb 1 b C Kc 2 c D Kd 3 d)
    Slots5(A Ka 0 a B Kb 1 b C Kc 2 c D Kd 3 d E Ke 4 e)
    Slots6(A Ka 0 a B Kb 1 b C Kc 2 c D Kd 3 d E Ke 4 e F Kf 5 f)
    Slots7(A Ka 0 a B Kb 1 b C Kc 2 c D Kd 3 d E Ke 4 e F Kf 5 f G Kg 6 g)
    Slots8(A Ka 0 a B Kb 1 b C Kc 2 c D Kd 3 d E Ke 4 e F Kf 5 f G Kg 6 g H Kh 7 h)
    Slots9(A Ka 0 a B Kb 1 b C Kc 2 c D Kd 3 d E Ke 4 e F Kf 5 f G Kg 6 g H Kh 7 h I Ki 8 i)
    Slots10(A Ka 0 a B Kb 1 b C Kc 2 c D Kd 3 d E Ke 4 e F Kf 5 f G Kg 6 g H Kh 7 h I Ki 8 i J Kj 9 j)
    Slots11(A Ka 0 a B Kb 1 b C Kc 2 c D Kd 3 d E Ke 4 e F Kf 5 f G Kg 6 g H Kh 7 h I Ki 8 i J Kj 9 j K Kk 10 k)
    Slots12(A Ka 0 a B Kb 1 b C Kc 2 c D Kd 3 d E Ke 4 e F Kf 5 f G Kg 6 g H Kh 7 h I Ki 8 i J Kj 9 j K Kk 10 k N Kn 11 n)
}
