//! `when_all(vec)`: one child per element of the vector. One allocation for their operations, in memory of the task,
//! and one for their values, which are the program's.

#![allow(unsafe_code)]

use super::gather::{Gather, GatherChild, GatherParent, ResultSlot, ResultWriter, Starter, together};
use super::when_all::{WhenAll, WhenAllOutcomes};
use crate::{Completes, Receiver, Sender};
use convoke_core::Outcome;
use convoke_core::raw::{FrameMemory, FrameVec, Slot};

// SAFETY: rules 1 and 2 of `Gather`: each slot, and the writer of each result, is used once, for the sender with
// the same index; there are as many of them as senders.
unsafe impl<S> Gather for WhenAll<Vec<S>>
where
    S: Sender<Value: Send, Error: Send>,
{
    type Value = Vec<S::Value>;
    type Error = S::Error;
    const COMPLETES: Completes = together(S::COMPLETES);
    type Kept = WhenAllOutcomes<Vec<ResultSlot<S::Value>>, S::Error>;
    type Slots<R: Receiver<Self::Value, S::Error>> =
        FrameVec<Slot<S::Operation<GatherChild<Self, R, ResultWriter<S::Value>>>>>;

    fn count(&self) -> usize {
        self.senders.len()
    }

    fn kept(&self) -> Self::Kept {
        WhenAllOutcomes::new(self.senders.iter().map(|_| ResultSlot::new()).collect())
    }

    fn slots<R: Receiver<Self::Value, S::Error>>(&self) -> Self::Slots<R> {
        in_task(self.senders.iter().map(|_| Slot::new()))
    }

    fn connect<R: Receiver<Self::Value, S::Error>>(
        self,
        slots: &Self::Slots<R>,
        kept: &Self::Kept,
        parent: GatherParent<Self, R>,
    ) {
        for ((sender, slot), result) in self.senders.into_iter().zip(slots).zip(&kept.values) {
            parent.connect(slot, sender, ResultWriter::of(result));
        }
    }

    fn start<R: Receiver<Self::Value, S::Error>>(slots: &Self::Slots<R>, starter: &Starter<'_>) {
        for slot in slots {
            starter.start(slot);
        }
    }

    fn outcome(kept: &mut Self::Kept) -> Outcome<Self::Value, S::Error> {
        // The standard library collects in place here: the allocation of the results becomes that of the
        // values.
        kept.outcome(|results| core::mem::take(results).into_iter().map(ResultSlot::into_inner).collect())
    }
}

/// Collects values in memory of the running task, where they stay: the vector is not pushed to any more.
pub(super) fn in_task<T>(values: impl ExactSizeIterator<Item = T>) -> FrameVec<T> {
    let mut all = FrameMemory::vec_in_task();
    all.reserve_exact(values.len());
    all.extend(values);
    all
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, stopped_env};

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
    fn a_stop_and_a_failure_reach_all_the_others() {
        let gates = [Door::new(), Door::new(), Door::new()];
        let all = || when_all(gates.iter().map(Gate::sender).collect::<Vec<_>>());
        assert_eq!(Connected::with_env(all(), stopped_env()).start().outcome(), Outcome::Stopped);
        let running = Connected::new(all()).start();
        gates[1].complete(Outcome::Error("e"));
        assert!([0, 2].iter().all(|&at: &usize| gates[at].asked_to_stop() == Some(StopReason::Sibling)));
        assert_eq!(running.outcome(), Outcome::Error("e"));
    }

    /// Once, children that cannot fail were not stopped because of another: the whole waited for ever.
    #[test]
    fn children_that_cannot_fail_are_stopped_by_one_that_stops_or_panics() {
        for end in [Outcome::Stopped, Outcome::Panicked(Panic::new("p"))] {
            let gates = [Gate::<u8>::new(), Gate::<u8>::new(), Gate::<u8>::new()];
            let all = when_all(gates.iter().map(Gate::sender).collect::<Vec<_>>());
            let running = Connected::new(all).start();
            let expected =
                if end.is_panicked() { Outcome::Panicked(Panic::new("p")) } else { Outcome::Stopped };
            gates[1].complete(end);
            assert!([0, 2].iter().all(|&at: &usize| gates[at].asked_to_stop() == Some(StopReason::Sibling)));
            assert_eq!(running.outcome(), expected);
        }
    }

    #[test]
    fn dropping_it_unstarted_drops_the_senders() {
        let count = DropCount::new();
        drop(Connected::new(when_all(vec![just(count.token()), just(count.token())])));
        assert_eq!(count.dropped(), 2);
    }
}
