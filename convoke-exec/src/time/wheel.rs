//! The hierarchical timer wheel of a queue. Arming and disarming are a few writes, however many timers there
//! are. Nothing allocates: the lists are linked through the timers.
//!
//! A tick is about a millisecond. The tick of a timer, written in digits of base 64, determines its list:
//! 1. Its level is the highest digit in which it differs from the wheel's own tick, and its slot is that
//!    digit. So timers on a level come before all on the levels above, and within a level before those in
//!    later slots.
//! 2. When the wheel's tick reaches a slot, its timers cascade to the levels below; those of that very tick
//!    go to `FRONT`, sorted by their exact times. Timers that are armed for the current tick or an earlier
//!    one go to `LATE`, unsorted, until the next round of calls.
//! 3. Two timers with the same time are in the same slot or in `LATE`, or the one that was armed first is in
//!    `FRONT` and the other one is not yet. Sorting compares their sequence numbers too, so they keep their
//!    order.
//! 4. A slot has several lists, and code that moves its timers walks all of them in turn, so that their
//!    memory accesses overlap: timers are spread over the memory.

use convoke_core::raw::{ArmedTimer, IdleTimer};

use super::lists::{Due, Linked, Lists, NONE};
use super::sorting;

/// Binary logarithm of the nanoseconds of a tick. Shorter ticks would need more levels and more cascades;
/// times within a tick are ordered when it is reached.
const TICK_BITS: u32 = 20;
/// Number of bits of a digit.
const DIGIT_BITS: u32 = 6;
const SLOTS: u32 = 1 << DIGIT_BITS;
/// Enough levels for 64-bit nanoseconds.
const LEVELS: u32 = (64 - TICK_BITS).div_ceil(DIGIT_BITS);
/// Number of lists of a slot.
const LISTS_PER_SLOT: u32 = 4;
/// List of the timers that are called next, sorted by time.
const FRONT: u32 = LEVELS * SLOTS * LISTS_PER_SLOT;
/// List of the timers that were armed for a tick that was already reached.
const LATE: u32 = FRONT + 1;
/// List of the timers for durations that start at the next check. Until then their `at` is the duration.
const UNSTARTED: u32 = LATE + 1;
/// Number of timers that are visited to find the earliest. If there are more, a lower bound is used.
const MAX_VISITS: usize = 32;

/// The armed timers of a queue.
pub(super) struct Wheel {
    /// Timers of this tick and of earlier ones are no longer in slots.
    tick: u64,
    waiting: usize,
    /// Number of timers armed so far: the source of sequence numbers.
    armed: u64,
    /// A bit for each slot that is not empty, by level.
    occupied: [u64; LEVELS as usize],
    lists: Lists<{ UNSTARTED as usize + 1 }>,
}

/// The time of the earliest timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Earliest {
    None,
    At(u64),
    /// The next timer is due at this time or later: check again then.
    NotBefore(u64),
}

impl Wheel {
    /// Creates an empty wheel at this time.
    pub(super) fn new(now: u64) -> Self {
        let occupied = [0; LEVELS as usize];
        Self { tick: now >> TICK_BITS, waiting: 0, armed: 0, occupied, lists: Lists::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Adds a timer.
    #[inline]
    pub(super) fn insert(&mut self, timer: IdleTimer, at: u64) {
        let timer = self.count(timer, at);
        self.link(timer, at, self.armed);
    }

    /// Adds a timer for a duration that starts at the next check.
    #[inline]
    pub(super) fn insert_unstarted(&mut self, timer: IdleTimer, duration: u64) {
        let timer = self.count(timer, duration);
        self.lists.push(UNSTARTED, timer);
    }

    /// Counts a timer and writes its links.
    #[inline]
    fn count(&mut self, timer: IdleTimer, at: u64) -> Linked {
        self.waiting += 1;
        self.armed += 1;
        Linked::new(timer, at, self.armed)
    }

    /// Returns true if there are durations that start at the next check.
    #[inline]
    pub(super) fn has_unstarted(&self) -> bool {
        !self.lists.is_empty(UNSTARTED)
    }

    /// Starts the durations that wait for a check. Times later than `last` become `last`.
    pub(super) fn settle(&mut self, now: u64, last: u64) {
        let mut chain = self.lists.take(UNSTARTED);
        while let Some(timer) = chain {
            // Before `link` overwrites it.
            chain = timer.next();
            let at = now.saturating_add(timer.at()).min(last);
            timer.set_at(at);
            self.link(timer, at, timer.order());
        }
    }

    /// Returns the time of a timer, if it is in the wheel and its time is known.
    pub(super) fn time_of(&self, timer: ArmedTimer) -> Option<u64> {
        let timer = Linked::from(timer);
        (!matches!(timer.list(), UNSTARTED | NONE)).then(|| timer.at())
    }

    /// Removes a timer and returns its time. Returns `None` if it is not in the wheel.
    #[inline]
    pub(super) fn remove(&mut self, timer: ArmedTimer) -> Option<u64> {
        let timer = Linked::from(timer);
        let list = timer.list();
        if list == NONE {
            return None;
        }
        self.lists.remove(timer);
        if list < FRONT && self.lists.is_empty(list) {
            let slot = list / LISTS_PER_SLOT;
            if lists_of_slot(slot).all(|list| self.lists.is_empty(list)) {
                self.occupied[(slot / SLOTS) as usize] &= !(1 << (slot % SLOTS));
            }
        }
        self.waiting -= 1;
        Some(timer.at())
    }

    /// Begins a round of calls: moves the timers in `LATE` to `FRONT`.
    pub(super) fn take_late(&mut self) {
        let chain = self.lists.take(LATE);
        self.merge_into_front(&mut [chain]);
    }

    /// Moves the wheel to the next tick that has timers, but not beyond `now`, so that they can be popped.
    /// Returns false if there is none. It moves one tick at a time, so that sorted timers are still in the
    /// cache when they are called.
    pub(super) fn advance(&mut self, now: u64) -> bool {
        let target = now >> TICK_BITS;
        while let Some((level, slot, start)) = self.next_slot().filter(|(.., start)| *start <= target) {
            self.tick = start;
            self.occupied[level as usize] &= !(1 << slot);
            let mut chains = [None; LISTS_PER_SLOT as usize];
            for (chain, list) in chains.iter_mut().zip(lists_of_slot(level * SLOTS + slot)) {
                *chain = self.lists.take(list);
            }
            if level > 0 {
                chains[0] = self.cascade(&mut chains);
            }
            if self.merge_into_front(&mut chains) {
                return true;
            }
        }
        self.tick = self.tick.max(target);
        false
    }

    /// Removes and returns the earliest timer of `FRONT`, if it is due at `now`.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<Due> {
        let first = self.lists.first(FRONT).filter(|first| first.at() <= now)?;
        self.waiting -= 1;
        Some(self.lists.remove_due(first))
    }

    /// Returns the time of the earliest timer, or a lower bound. The cost does not grow with the number of
    /// timers.
    pub(super) fn earliest(&self) -> Earliest {
        self.earliest_within(MAX_VISITS)
    }

    /// Returns the exact time of the earliest timer. Visits as many timers as necessary.
    pub(super) fn earliest_exactly(&self) -> Option<u64> {
        match self.earliest_within(usize::MAX) {
            Earliest::None => None,
            Earliest::At(at) | Earliest::NotBefore(at) => Some(at),
        }
    }

    fn earliest_within(&self, max_visits: usize) -> Earliest {
        let first = self.lists.times(FRONT).next();
        let (lists, start) = match self.next_slot() {
            _ if !self.lists.is_empty(LATE) => (LATE..LATE + 1, 0),
            _ if first.is_some() => return first.map_or(Earliest::None, Earliest::At),
            Some((level, slot, start)) => (lists_of_slot(level * SLOTS + slot), start << TICK_BITS),
            None => return Earliest::None,
        };
        let mut times = lists.flat_map(|list| self.lists.times(list));
        let earliest = times.by_ref().take(max_visits).chain(first).min();
        match times.next() {
            Some(_) => Earliest::NotBefore(start),
            None => earliest.map_or(Earliest::None, Earliest::At),
        }
    }

    /// Returns level, number and first tick of the next slot that is not empty.
    #[inline]
    fn next_slot(&self) -> Option<(u32, u32, u64)> {
        let level = self.occupied.iter().position(|slots| *slots != 0)?;
        let slot = self.occupied[level].trailing_zeros();
        let level = level as u32;
        // Timers on this level share all higher digits with the wheel's tick.
        let higher = DIGIT_BITS * (level + 1);
        let start = (self.tick >> higher << higher) | (u64::from(slot) << (DIGIT_BITS * level));
        Some((level, slot, start))
    }

    /// Links a timer, which is in no list, into the one that rules 1 and 2 determine.
    #[inline]
    fn link(&mut self, timer: Linked, at: u64, order: u64) {
        let tick = at >> TICK_BITS;
        let list = if tick <= self.tick {
            LATE
        } else {
            let level = (tick ^ self.tick).ilog2() / DIGIT_BITS;
            let slot = (tick >> (DIGIT_BITS * level)) as u32 % SLOTS;
            self.occupied[level as usize] |= 1 << slot;
            (level * SLOTS + slot) * LISTS_PER_SLOT + order as u32 % LISTS_PER_SLOT
        };
        self.lists.push(list, timer);
    }

    /// Moves timers to the levels below, and leaves the chains empty. Returns those of this very tick, as a
    /// chain.
    fn cascade(&mut self, chains: &mut [Option<Linked>; LISTS_PER_SLOT as usize]) -> Option<Linked> {
        let mut this_tick = None;
        while chains.iter().any(Option::is_some) {
            for chain in &mut *chains {
                let Some(timer) = *chain else { continue };
                // Before it is overwritten.
                *chain = timer.next();
                let at = timer.at();
                if at >> TICK_BITS > self.tick {
                    self.link(timer, at, timer.order());
                } else {
                    timer.set_next(this_tick);
                    this_tick = Some(timer);
                }
            }
        }
        this_tick
    }

    /// Sorts timers into `FRONT`. Returns true if there were any.
    fn merge_into_front(&mut self, chains: &mut [Option<Linked>]) -> bool {
        let Some(sorted) = sorting::sort(chains) else { return false };
        let mut chain = Some(sorted);
        if self.lists.last_time(FRONT).is_some_and(|last| sorted.at() < last) {
            chain = sorting::merge(self.lists.take(FRONT), chain);
        }
        self.lists.push_chain(FRONT, chain);
        true
    }
}

/// Returns the lists of a slot.
#[inline]
fn lists_of_slot(slot: u32) -> core::ops::Range<u32> {
    slot * LISTS_PER_SLOT..(slot + 1) * LISTS_PER_SLOT
}
