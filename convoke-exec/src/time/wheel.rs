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
//! 5. A timer in the wheel is alive and in place until it is removed or popped, and the wheel owns its links:
//!    `insert` makes its caller promise that.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::{Timer, TimerLinks};

use super::lists::{Lists, NONE, links, list_of, order_of, unlinked_place};
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
    /// It is not before this time. A check at this time finds out more.
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
    ///
    /// # Safety
    /// The timer is in no wheel. It is alive and stays in place, and nothing else touches its links, until it
    /// is removed or popped.
    #[inline]
    pub(super) unsafe fn insert(&mut self, timer: NonNull<Timer>, at: u64) {
        // SAFETY: the caller promises access to the timer and that it is in no wheel.
        unsafe {
            self.init_links(timer, at);
            self.link(timer, at, self.armed);
        }
    }

    /// Adds a timer for a duration that starts at the next check.
    ///
    /// # Safety
    /// As for `insert`.
    #[inline]
    pub(super) unsafe fn insert_unstarted(&mut self, timer: NonNull<Timer>, duration: u64) {
        // SAFETY: the caller promises access to the timer and that it is in no wheel.
        unsafe {
            self.init_links(timer, duration);
            self.lists.push(UNSTARTED, timer);
        }
    }

    /// Counts a timer and writes its links.
    ///
    /// # Safety
    /// As for `insert`.
    #[inline]
    unsafe fn init_links(&mut self, timer: NonNull<Timer>, at: u64) {
        self.waiting += 1;
        self.armed += 1;
        let (next, place) = (core::ptr::null_mut(), unlinked_place(self.armed));
        // SAFETY: the caller promises access to the timer's links.
        unsafe { Timer::links(timer).write(TimerLinks { at, next, before: next, place }) };
    }

    /// Returns true if there are durations that start at the next check.
    #[inline]
    pub(super) fn has_unstarted(&self) -> bool {
        !self.lists.is_empty(UNSTARTED)
    }

    /// Starts the durations that wait for a check. Times later than `last` become `last`.
    pub(super) fn settle(&mut self, now: u64, last: u64) {
        let mut chain = self.lists.take(UNSTARTED);
        while let Some(timer) = NonNull::new(chain) {
            // SAFETY: rule 5: it is alive and its links are ours; `take` has left it in no list. `next` is
            // read before `link` overwrites it.
            unsafe {
                let TimerLinks { at: duration, next, place, .. } = *links(chain);
                let at = now.saturating_add(duration).min(last);
                (*links(chain)).at = at;
                self.link(timer, at, order_of(place));
                chain = next;
            }
        }
    }

    /// Returns the time of a timer, if it is in the wheel and its time is known.
    ///
    /// # Safety
    /// The timer is alive and is or was in this wheel.
    pub(super) unsafe fn time_of(&self, timer: NonNull<Timer>) -> Option<u64> {
        // SAFETY: the caller promises that it is alive; once inserted, its links are written only by this
        // wheel.
        let TimerLinks { at, place, .. } = unsafe { &*Timer::links(timer) };
        (!matches!(list_of(*place), UNSTARTED | NONE)).then_some(*at)
    }

    /// Writes the links of a timer that is in no wheel.
    ///
    /// # Safety
    /// The timer is alive and in no wheel, and nothing else has access to its links.
    #[inline]
    pub(super) unsafe fn mark_unlinked(timer: NonNull<Timer>, at: u64) {
        let (next, place) = (core::ptr::null_mut(), unlinked_place(0));
        // SAFETY: the caller promises access to the timer's links.
        unsafe { Timer::links(timer).write(TimerLinks { at, next, before: next, place }) };
    }

    /// Removes a timer and returns its time. Returns `None` if it is not in the wheel.
    ///
    /// # Safety
    /// The timer is alive and is or was in this wheel.
    #[inline]
    pub(super) unsafe fn remove(&mut self, timer: NonNull<Timer>) -> Option<u64> {
        // SAFETY: the caller promises that it is alive and was inserted here; its `place` says whether it is
        // still in a list.
        unsafe {
            let TimerLinks { at, place, .. } = *Timer::links(timer);
            let list = list_of(place);
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
            Some(at)
        }
    }

    /// Begins a round of calls: moves the timers in `LATE` to `FRONT`.
    pub(super) fn take_late(&mut self) {
        let chain = self.lists.take(LATE);
        // SAFETY: rule 5: they are alive and their links are ours; `take` has left them in no list.
        unsafe { self.merge_into_front(&mut [chain]) };
    }

    /// Moves the wheel to the next tick that has timers, but not beyond `now`, so that they can be popped.
    /// Returns false if there is none. It moves one tick at a time, so that sorted timers are still in the
    /// cache when they are called.
    pub(super) fn advance(&mut self, now: u64) -> bool {
        let target = now >> TICK_BITS;
        while let Some((level, slot, start)) = self.next_slot().filter(|(.., start)| *start <= target) {
            self.tick = start;
            self.occupied[level as usize] &= !(1 << slot);
            let mut chains = [core::ptr::null_mut(); LISTS_PER_SLOT as usize];
            for (chain, list) in chains.iter_mut().zip(lists_of_slot(level * SLOTS + slot)) {
                *chain = self.lists.take(list);
            }
            if level > 0 {
                // SAFETY: rule 5: they are alive and their links are ours; `take` has left them
                // in no list.
                chains[0] = unsafe { self.cascade(&mut chains) };
            }
            // SAFETY: rule 5: they are alive and their links are ours; they are in no list.
            if unsafe { self.merge_into_front(&mut chains) } {
                return true;
            }
        }
        self.tick = self.tick.max(target);
        false
    }

    /// Removes and returns the earliest timer of `FRONT`, if it is due at `now`.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<NonNull<Timer>> {
        let first = self.lists.first(FRONT)?;
        // SAFETY: rule 5: a timer in a list is alive, and its links are ours.
        unsafe {
            if (*Timer::links(first)).at > now {
                return None;
            }
            self.lists.remove(first);
        }
        self.waiting -= 1;
        Some(first)
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

    /// Links a timer into the list that rules 1 and 2 determine.
    ///
    /// # Safety
    /// As for `Lists::push`.
    #[inline]
    unsafe fn link(&mut self, timer: NonNull<Timer>, at: u64, order: u64) {
        let tick = at >> TICK_BITS;
        let list = if tick <= self.tick {
            LATE
        } else {
            let level = (tick ^ self.tick).ilog2() / DIGIT_BITS;
            let slot = (tick >> (DIGIT_BITS * level)) as u32 % SLOTS;
            self.occupied[level as usize] |= 1 << slot;
            (level * SLOTS + slot) * LISTS_PER_SLOT + order as u32 % LISTS_PER_SLOT
        };
        // SAFETY: the caller keeps the contract of `push`.
        unsafe { self.lists.push(list, timer) };
    }

    /// Moves timers to the levels below, and leaves the chains empty. Returns those of this very tick, as a
    /// chain.
    ///
    /// # Safety
    /// The contract of `Lists::push` holds for each of them.
    unsafe fn cascade(&mut self, chains: &mut [*mut Timer; LISTS_PER_SLOT as usize]) -> *mut Timer {
        let mut this_tick = core::ptr::null_mut();
        while chains.iter().any(|chain| !chain.is_null()) {
            for chain in &mut *chains {
                let Some(timer) = NonNull::new(*chain) else { continue };
                // SAFETY: the caller keeps the contract of `push` for each timer. `next` is read before it is
                // overwritten.
                unsafe {
                    let TimerLinks { at, next, place, .. } = *Timer::links(timer);
                    *chain = next;
                    if at >> TICK_BITS > self.tick {
                        self.link(timer, at, order_of(place));
                    } else {
                        (*Timer::links(timer)).next = this_tick;
                        this_tick = timer.as_ptr();
                    }
                }
            }
        }
        this_tick
    }

    /// Sorts timers into `FRONT`. Returns true if there were any.
    ///
    /// # Safety
    /// The contract of `Lists::push` holds for each of them.
    unsafe fn merge_into_front(&mut self, chains: &mut [*mut Timer]) -> bool {
        // SAFETY: the caller promises access to the timers in the chains, and rule 5 says it for those in
        // `FRONT`.
        unsafe {
            let mut chain = sorting::sort(chains);
            if chain.is_null() {
                return false;
            }
            if self.lists.last_time(FRONT).is_some_and(|last| (*links(chain)).at < last) {
                chain = sorting::merge(self.lists.take(FRONT), chain);
            }
            self.lists.push_chain(FRONT, chain);
        }
        true
    }
}

/// Returns the lists of a slot.
#[inline]
fn lists_of_slot(slot: u32) -> core::ops::Range<u32> {
    slot * LISTS_PER_SLOT..(slot + 1) * LISTS_PER_SLOT
}
