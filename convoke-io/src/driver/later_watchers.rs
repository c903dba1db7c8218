//! `LaterWatchers`: the second and further watchers of one direction of a source. Mostly there are none;
//! there may be many.

use core::task::Waker;

use convoke_core::raw::visit_step;

/// Wakers by number. Numbers are even, increase, and are never reused.
///
/// The wakers lie in one vector, sorted by number, so that a binary search finds one. Removing one from the
/// middle leaves a gap. When most slots are gaps the vector is compacted, so removal costs as much as
/// insertion on average. The last slot is never a gap.
#[derive(Default)]
pub(super) struct LaterWatchers {
    slots: Vec<(u64, Option<Waker>)>,
    gaps: usize,
    last_number: u64,
}

/// The number of gaps that never cause compaction, however few wakers wait.
const GAPS_IGNORED: usize = 16;

impl LaterWatchers {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds a waker, and returns its number.
    pub(super) fn push(&mut self, waker: Waker) -> u64 {
        self.last_number += 2;
        self.slots.push((self.last_number, Some(waker)));
        self.last_number
    }

    /// Returns the waker with this number, if it waits.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Waker> {
        let found = self.find(number)?;
        self.slots[found].1.as_mut()
    }

    /// Removes the waker with this number, if it waits.
    pub(super) fn remove(&mut self, number: u64) -> Option<Waker> {
        let found = self.find(number)?;
        let waker = self.slots[found].1.take()?;
        self.gaps += 1;
        self.compact();
        Some(waker)
    }

    /// Takes the last waker.
    pub(super) fn take(&mut self) -> Option<Waker> {
        let (_, waker) = self.slots.pop()?;
        self.compact();
        waker
    }

    fn find(&self, number: u64) -> Option<usize> {
        let found = self.slots.binary_search_by(|(other, _)| {
            visit_step();
            other.cmp(&number)
        });
        found.ok()
    }

    /// Removes the gaps at the end, and all gaps if they are the majority.
    fn compact(&mut self) {
        while self.slots.pop_if(|(_, waker)| waker.is_none()).is_some() {
            visit_step();
            self.gaps -= 1;
        }
        if self.gaps > GAPS_IGNORED.max(self.slots.len() / 2) {
            self.gaps = 0;
            self.slots.retain(|(_, waker)| {
                visit_step();
                waker.is_some()
            });
        }
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::super::{Ticket, Watchers};
    use super::*;
    use convoke_core::raw::count_steps;

    #[test]
    fn removing_many_in_any_order_takes_a_few_steps_each() {
        const MANY: usize = if cfg!(miri) { 60 } else { 40_000 };
        let most = MANY * (4 + MANY.ilog2() as usize);
        let orders: [fn(&mut Vec<Ticket>); 3] = [
            |_| {},
            |tickets| tickets.reverse(),
            // Every second one, then the rest: each is somewhere in the middle.
            |tickets| {
                let (evens, odds): (Vec<_>, Vec<_>) = tickets.chunks(2).map(|two| (two[0], two[1])).unzip();
                *tickets = odds.into_iter().chain(evens).collect();
            },
        ];
        for order in orders {
            let mut watchers = Watchers::new();
            let wait = |_| watchers.watch(Ticket::NONE, Waker::noop().clone()).ticket;
            let mut tickets: Vec<_> = (0..MANY).map(wait).collect();
            order(&mut tickets);
            let taken = count_steps(|| {
                for ticket in &tickets {
                    assert!(watchers.unwatch(*ticket).is_some());
                }
            });
            assert!(watchers.is_empty());
            assert!(taken <= most, "{taken} steps to remove {MANY}");
        }
    }

    #[test]
    fn polling_many_again_takes_a_few_steps_each() {
        const MANY: usize = if cfg!(miri) { 60 } else { 40_000 };
        let mut watchers = Watchers::new();
        let mut tickets = vec![Ticket::NONE; MANY];
        for _ in 0..2 {
            let taken = count_steps(|| {
                for ticket in &mut tickets {
                    *ticket = watchers.watch(*ticket, Waker::noop().clone()).ticket;
                }
            });
            assert!(taken <= MANY * (2 + MANY.ilog2() as usize), "{taken} steps for {MANY} that wait again");
        }
    }

    #[test]
    fn removed_wakers_are_not_found_and_the_others_are() {
        let mut watchers = LaterWatchers::default();
        let numbers: Vec<u64> = (0..100).map(|_| watchers.push(Waker::noop().clone())).collect();
        for number in numbers.iter().filter(|number| **number % 6 != 0) {
            assert!(watchers.remove(*number).is_some() && watchers.remove(*number).is_none());
            assert!(watchers.get_mut(*number).is_none());
        }
        let left: Vec<u64> = numbers.iter().copied().filter(|number| number % 6 == 0).collect();
        assert!(left.iter().all(|number| watchers.get_mut(*number).is_some()));
        let taken = core::iter::from_fn(|| watchers.take()).count();
        assert_eq!((taken, watchers.is_empty(), watchers.gaps), (left.len(), true, 0));
    }
}
