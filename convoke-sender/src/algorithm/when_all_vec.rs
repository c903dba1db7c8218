//! `when_all(vec)`: one child per element of the vector. One allocation for their operations, one for their
//! values.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use super::gather::{Child, Gather, Parent, together};
use super::when_all::{Kept, Place, Room, WhenAll};
use crate::{Completes, Receiver, Sender};
use convoke_core::raw::Slot;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::{Never, Outcome};

impl<S> Gather for WhenAll<Vec<S>>
where
    S: Sender<Value: Send, Error: Send>,
{
    type Value = Vec<S::Value>;
    type Error = S::Error;
    const COMPLETES: Completes = together(S::COMPLETES);
    const STOPS: bool = !Never::is::<S::Error>();
    type Kept = Kept<Vec<Room<S::Value>>, S::Error>;
    type Slots<R: Receiver<Self::Value, S::Error>> =
        Box<[Slot<S::Operation<Child<Self, R, Place<S::Value>>>>]>;

    fn count(&self) -> usize {
        self.senders.len()
    }

    fn kept(&self) -> Self::Kept {
        Kept::new(self.senders.iter().map(|_| Room::new(None)).collect())
    }

    fn slots<R: Receiver<Self::Value, S::Error>>(&self) -> Self::Slots<R> {
        self.senders.iter().map(|_| Slot::new()).collect()
    }

    unsafe fn connect<R: Receiver<Self::Value, S::Error>>(
        self,
        slots: &Self::Slots<R>,
        kept: &Self::Kept,
        parent: Parent<Self, R>,
    ) {
        for ((sender, slot), cell) in self.senders.into_iter().zip(slots).zip(&kept.values) {
            // SAFETY: the caller promises that all slots are pinned, empty and not used otherwise.
            unsafe { slot.connect(|| sender.connect(parent.child(Place::of(cell)))) };
        }
    }

    unsafe fn start<R: Receiver<Self::Value, S::Error>>(slots: &Self::Slots<R>) {
        for slot in slots {
            // SAFETY: the caller promises that all slots were connected, and outlive their children and this
            // call.
            unsafe { Slot::start(NonNull::from(slot)) };
        }
    }

    fn outcome(kept: &mut Self::Kept) -> Outcome<Self::Value, S::Error> {
        // The standard library collects in place here: the allocation of the cells becomes that of the
        // values.
        kept.outcome(|cells| core::mem::take(cells).into_iter().map(UnsafeCell::into_inner).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_doors, stopped_env};

    type Door = Gate<i32, &'static str>;

    #[test]
    fn a_vec_completes_with_a_vec() {
        let senders = (0..5).map(just).collect::<Vec<_>>();
        assert_eq!(Connected::new(when_all(senders)).start().outcome(), Outcome::Value(vec![0, 1, 2, 3, 4]));
        assert_eq!(
            Connected::new(when_all(Vec::<Just<u8>>::new())).start().outcome(),
            Outcome::Value(vec![])
        );
        let gates = [Door::new(), Door::new(), Door::new()];
        let running = Connected::new(when_all(gates.iter().map(Gate::sender).collect::<Vec<_>>())).start();
        for index in [2, 0, 1] {
            gates[index].complete(Outcome::Value(index as i32));
        }
        assert_eq!(running.outcome(), Outcome::Value(vec![0, 1, 2]));
    }

    #[test]
    fn each_door_of_a_child_is_that_of_the_whole() {
        for (outcome, sender) in all_doors(1, "e") {
            let expected = outcome.map(|v| vec![v]);
            assert_eq!(Connected::new(when_all(vec![sender])).start().outcome(), expected);
        }
    }

    #[test]
    fn a_stop_and_a_failure_reach_all_the_others() {
        let gates = [Door::new(), Door::new(), Door::new()];
        let all = || when_all(gates.iter().map(Gate::sender).collect::<Vec<_>>());
        assert_eq!(Connected::with_env(all(), stopped_env()).start().outcome(), Outcome::Stopped);
        let running = Connected::new(all()).start();
        gates[1].complete(Outcome::Error("e"));
        assert!([0, 2].iter().all(|&at: &usize| gates[at].asked_to_stop() == Some(StopReason::Sibling)));
        assert_eq!(running.outcome(), Outcome::Error("e"));
    }

    #[test]
    fn dropping_it_unstarted_drops_the_senders() {
        let count = DropCount::new();
        drop(Connected::new(when_all(vec![just(count.token()), just(count.token())])));
        assert_eq!(count.dropped(), 2);
    }
}
