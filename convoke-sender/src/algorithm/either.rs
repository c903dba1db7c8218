//! `Either`: one of two senders, chosen at run time.

#![allow(unsafe_code)]

use core::pin::Pin;

use crate::{Completes, Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::{Env, ExecutorRef};

/// A sender of one of two types, chosen at run time. Both have the same value and the same error.
///
/// - *Completes with* the outcome of the chosen sender.
/// - *If dropped* before it starts, the chosen sender is dropped.
/// - *Runs on* the executors of the chosen sender.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// fn halve(number: u32) -> impl Sender<Value = u32, Error = &'static str> {
///     if number % 2 == 0 {
///         Either::Left(just(number / 2).may_fail())
///     } else {
///         Either::Right(just_error("odd"))
///     }
/// }
/// assert_eq!(sync_wait(halve(14)), Outcome::Value(7));
/// assert_eq!(sync_wait(halve(15)), Outcome::Error("odd"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a sender does nothing until it is started"]
pub enum Either<A, B> {
    /// A sender of the first type.
    Left(A),
    /// A sender of the second type.
    Right(B),
}

impl<A, B> Either<A, B> {
    /// Returns true if it is the left one.
    pub const fn is_left(&self) -> bool {
        matches!(self, Self::Left(_))
    }

    /// Returns true if it is the right one.
    pub const fn is_right(&self) -> bool {
        matches!(self, Self::Right(_))
    }

    /// Returns the left one, if it is that.
    pub fn left(self) -> Option<A> {
        match self {
            Self::Left(a) => Some(a),
            Self::Right(_) => None,
        }
    }

    /// Returns the right one, if it is that.
    pub fn right(self) -> Option<B> {
        match self {
            Self::Left(_) => None,
            Self::Right(b) => Some(b),
        }
    }

    /// Exchanges left and right.
    pub fn flip(self) -> Either<B, A> {
        match self {
            Self::Left(a) => Either::Right(a),
            Self::Right(b) => Either::Left(b),
        }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the operation of the chosen sender keeps to them. Rule 3: `COMPLETES` is
// the lesser knowledge of both.
#[diagnostic::do_not_recommend]
unsafe impl<A, B> Sender for Either<A, B>
where
    A: Sender,
    B: Sender<Value = A::Value, Error = A::Error>,
{
    type Value = A::Value;
    type Error = A::Error;
    const COMPLETES: Completes = A::COMPLETES.and(B::COMPLETES);
    type Operation<R: Receiver<A::Value, A::Error>> = EitherOperation<A::Operation<R>, B::Operation<R>>;

    #[inline]
    fn connect<R: Receiver<A::Value, A::Error>>(self, receiver: R) -> Self::Operation<R> {
        match self {
            Self::Left(a) => EitherOperation::Left(a.connect(receiver)),
            Self::Right(b) => EitherOperation::Right(b.connect(receiver)),
        }
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        match self {
            Self::Left(a) => a.completes_on(env),
            Self::Right(b) => b.completes_on(env),
        }
    }
}

/// The operation of [`Either`].
#[derive(Debug)]
pub enum EitherOperation<A, B> {
    /// The operation of the left sender.
    Left(A),
    /// The operation of the right sender.
    Right(B),
}

impl<A: Operation, B: Operation> Operation for EitherOperation<A, B> {
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: the inner operation is pinned with this one: there is no `Drop` and no other access to it.
        // It is started once because this one is.
        unsafe {
            match self.get_unchecked_mut() {
                Self::Left(a) => Pin::new_unchecked(a).start(),
                Self::Right(b) => Pin::new_unchecked(b).start(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Completes;
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, all_outcomes, completes_of};
    use convoke_core::Env;

    #[test]
    fn completes_with_the_outcome_of_the_chosen_one() {
        type Both =
            Either<crate::testing::Ends<i32, &'static str>, crate::testing::AtGate<i32, &'static str, ()>>;
        for (outcome, sender) in all_outcomes(1, "e") {
            assert_eq!(Connected::new(Both::Left(sender)).start().outcome(), outcome);
        }
        for (outcome, sender) in all_outcomes(1, "e") {
            let right = Both::Left(sender).flip();
            assert!(right.is_right() && !right.is_left());
            assert_eq!(Connected::new(right).start().outcome(), outcome);
        }
    }

    #[test]
    fn knows_no_more_than_the_less_known_of_the_two() {
        let either =
            |left| if left { Either::Left(just(())) } else { Either::Right(schedule(&ByHand::new())) };
        assert_eq!(completes_of(&either(true)), Completes::Anywhere);
        assert_eq!(either(true).completes_on(&Env::new()), Some(ExecutorRef::default()));
        assert!(either(false).completes_on(&Env::new()).unwrap().downcast_ref::<ByHand>().is_some());
        assert_eq!(completes_of(&Either::<Just<i32>, Just<i32>>::Left(just(1))), Completes::Inline);
    }

    #[test]
    fn gives_out_the_chosen_one() {
        assert_eq!(Either::<_, u8>::Left(1).left(), Some(1));
        assert_eq!(Either::<i32, u8>::Left(1).right(), None);
        assert_eq!(Either::<u8, _>::Right(2).right(), Some(2));
        assert_eq!(Either::<u8, i32>::Right(2).left(), None);
    }

    #[test]
    fn dropping_it_unstarted_drops_the_chosen_one() {
        let count = DropCount::new();
        drop(Connected::new(Either::<Just<i32>, _>::Right(Gate::<i32>::new().holding(count.token()))));
        assert_eq!(count.dropped(), 1);
    }
}
