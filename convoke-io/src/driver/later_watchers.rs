//! Those who wait for a direction of a source where somebody else waits already. Mostly there are none; there may be many.

use core::task::Waker;

use convoke_core::raw::visit_step;

/// Wakers by their numbers, which are even, count up, and are never used again.
///
/// They lie in one piece of memory in the order of their numbers, so one is found by halving. Who leaves from the middle leaves a
/// gap; when most places are gaps they are closed, so a departure takes no longer than an arrival, on average. The last place is
/// never a gap.
#[derive(Default)]
pub(super) struct LaterWatchers {
    places: Vec<(u64, Option<Waker>)>,
    gaps: usize,
    last_number: u64,
}

/// So many gaps are left alone, however few wait.
const GAPS: usize = 16;

impl LaterWatchers {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a waker, and returns its number.
    pub(super) fn push(&mut self, waker: Waker) -> u64 {
        self.last_number += 2;
        self.places.push((self.last_number, Some(waker)));
        self.last_number
    }

    /// The waker with this number, if it is there.
    pub(super) fn place(&mut self, number: u64) -> Option<&mut Waker> {
        let found = self.find(number)?;
        self.places[found].1.as_mut()
    }

    /// Removes the waker with this number, if it is there.
    pub(super) fn remove(&mut self, number: u64) -> Option<Waker> {
        let found = self.find(number)?;
        let waker = self.places[found].1.take()?;
        self.gaps += 1;
        self.tidy();
        Some(waker)
    }

    /// Takes the last one.
    pub(super) fn take(&mut self) -> Option<Waker> {
        let (_, waker) = self.places.pop()?;
        self.tidy();
        waker
    }

    fn find(&self, number: u64) -> Option<usize> {
        let found = self.places.binary_search_by(|(other, _)| {
            visit_step();
            other.cmp(&number)
        });
        found.ok()
    }

    /// Removes the gaps at the end, and all of them if they are most of it.
    fn tidy(&mut self) {
        while self.places.pop_if(|(_, waker)| waker.is_none()).is_some() {
            visit_step();
            self.gaps -= 1;
        }
        if self.gaps > GAPS.max(self.places.len() / 2) {
            self.gaps = 0;
            self.places.retain(|(_, waker)| {
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
    fn many_who_leave_in_any_order_take_a_few_steps_each() {
        const MANY: usize = if cfg!(miri) { 200 } else { 40_000 };
        let most = MANY * (4 + MANY.ilog2() as usize);
        let orders: [fn(&mut Vec<Ticket>); 3] = [
            |_| {},
            |tickets| tickets.reverse(),
            // The one after the next one, round and round: each is somewhere in the middle.
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
            assert!(taken <= most, "{taken} steps for {MANY} who leave");
        }
    }

    #[test]
    fn many_who_are_polled_again_take_a_few_steps_each() {
        const MANY: usize = if cfg!(miri) { 200 } else { 40_000 };
        let mut watchers = Watchers::new();
        let mut tickets = vec![Ticket::NONE; MANY];
        for _ in 0..2 {
            let taken = count_steps(|| {
                for ticket in &mut tickets {
                    *ticket = watchers.watch(*ticket, Waker::noop().clone()).ticket;
                }
            });
            assert!(taken <= MANY * (2 + MANY.ilog2() as usize), "{taken} steps for {MANY} who wait again");
        }
    }

    #[test]
    fn who_left_is_not_found_and_the_others_are_in_their_order() {
        let mut watchers = LaterWatchers::default();
        let numbers: Vec<u64> = (0..100).map(|_| watchers.push(Waker::noop().clone())).collect();
        for number in numbers.iter().filter(|number| **number % 6 != 0) {
            assert!(watchers.remove(*number).is_some() && watchers.remove(*number).is_none());
            assert!(watchers.place(*number).is_none());
        }
        let left: Vec<u64> = numbers.iter().copied().filter(|number| number % 6 == 0).collect();
        assert!(left.iter().all(|number| watchers.place(*number).is_some()));
        let taken = core::iter::from_fn(|| watchers.take()).count();
        assert_eq!((taken, watchers.is_empty(), watchers.gaps), (left.len(), true, 0));
    }
}
