//! Tuples of futures, stored in place without allocation. Every future that has not ended is polled each time.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::Context;

use convoke_core::Panic;
use convoke_core::raw::budget;
use pin_project_lite::pin_project;

use super::branches::{Branches, Rooms};
use super::ended::ended;
use super::group::{Group, Rule, Sort};
use crate::region::BodyMark;

pin_project! {
    /// Slot of one branch.
    #[derive(Debug)]
    pub struct Slot<F, K> {
        #[pin]
        body: Option<F>,
        mark: BodyMark,
        value: Option<K>,
    }
}

impl<F: Future, K> Slot<F, K> {
    fn new(body: F) -> Self {
        Self { body: Some(body), mark: BodyMark::default(), value: None }
    }

    /// Polls the branch, if it has not ended. Returns true if it still runs. A branch that was never polled is
    /// polled also if the group is over, with the stop requested: it may own a resource that has to be closed.
    #[inline]
    fn poll<M, L>(self: Pin<&mut Self>, group: &mut Group<M, L>, cx: &mut Context<'_>) -> bool
    where
        M: Sort<F::Output, Kept = K, Last = L>,
    {
        let mut this = self.project();
        let Some(body) = this.body.as_mut().as_pin_mut() else { return false };
        let polled = Panic::catch(|| group.region.poll_one(body, this.mark, cx.waker(), false));
        let Some(outcome) = ended(polled, &group.region, || this.body.set(None)) else { return true };
        *this.value = group.ended(outcome);
        false
    }

    fn take(self: Pin<&mut Self>) -> Option<K> {
        self.project().value.take()
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
            type Rooms =
                $slots<$($future::IntoFuture,)+ $(<M as Sort<$future::Output>>::Kept,)+>;
            type Last = L;

            #[inline]
            fn rooms(self) -> Self::Rooms {
                $slots { $($field: Slot::new(self.$at.into_future()),)+ }
            }
        }

        #[diagnostic::do_not_recommend]
        impl<M, L, $($future,)+ $($value,)+> Rooms<M, L> for $slots<$($future,)+ $($value,)+>
        where
            M: Rule $(+ Sort<$future::Output, Kept = $value, Last = L>)+,
            $($future: Future,)+
        {
            type Output = ($($value,)+);

            #[inline]
            fn poll(self: Pin<&mut Self>, group: &mut Group<M, L>, cx: &mut Context<'_>) -> bool {
                let mut slots = self.project();
                let first = core::mem::take(&mut group.first);
                loop {
                    let (over, mut waits) = (group.over, false);
                    let (mut is_before_first, mut spent_at) = (false, None);
                    // Each is polled in one place, where it is inlined. Mostly once around: `first` is zero.
                    loop {
                        $(if ($at < first) == is_before_first {
                            if !budget::has_left() {
                                spent_at = spent_at.or(Some($at));
                            }
                            waits |= slots.$field.as_mut().poll(group, cx);
                        })+
                        if is_before_first || first == 0 {
                            break;
                        }
                        is_before_first = true;
                    }
                    group.first = spent_at.unwrap_or(0);
                    // Poll again: branches that were polled before the one that ended the group must hear of
                    // the stop.
                    if group.over == over {
                        return !waits;
                    }
                }
            }

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
