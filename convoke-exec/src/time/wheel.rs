//! The timers of a queue on a hierarchical wheel: arming and taking back are a few writes, however many there are. None
//! of them allocates; the lists are linked through the timers.
//!
//! A tick is about a millisecond. The number of a timer's tick, taken as digits of 64, says where the timer lies:
//! 1. On the level of the highest digit in which it differs from the wheel's own tick, in the slot of that digit. So what
//!    lies on a level comes before all on the levels above it, and within a level before what lies in later slots.
//! 2. When the wheel's tick reaches a slot, its timers go to levels below, and those of this very tick, in the exact order of
//!    their times, into `FRONT`. Those that are armed for this tick or one that has passed are in `LATE`, in no order, until
//!    the next look.
//! 3. Two with the same time are in the same slot or in `LATE`, or the one armed first is in `FRONT` and the other is not yet.
//!    Each knows the how-manieth it was to be armed, and whoever sorts looks at that: so they keep their order.
//! 4. A slot has several lists, and who moves its timers goes along all of them in turn: timers lie all over the memory,
//!    and while one of them is being fetched the others are too.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::{Timer, TimerLinks};

use super::lists::{Lists, NONE, links, list_at, order_of, place_of_next};
use super::sorting;

/// Nanoseconds of a tick, as a power of two. Finer ones would make more levels, and more moves between them; times within
/// a tick are told apart when it has come.
const TICK: u32 = 20;
/// Bits of a digit.
const DIGIT: u32 = 6;
const SLOTS: u32 = 1 << DIGIT;
/// Enough for all nanoseconds of 64 bits.
const LEVELS: u32 = (64 - TICK).div_ceil(DIGIT);
/// Lists of a slot.
const WAYS: u32 = 4;
/// Those that are called next, in the order of their times.
const FRONT: u32 = LEVELS * SLOTS * WAYS;
/// Those that were armed when their tick had come.
const LATE: u32 = FRONT + 1;
/// Those that were armed for a while that begins at the next look: until then it is the while that is written down.
const FRESH: u32 = LATE + 1;
/// How many of a list are looked at to find the earliest before one is content to know a time that is not later.
const LOOKS: usize = 32;

pub(super) struct Wheel {
    /// All before it and in it have been taken from the slots.
    tick: u64,
    waiting: usize,
    /// How many were armed.
    armed: u64,
    /// A bit for each slot in which there is something.
    occupied: [u64; LEVELS as usize],
    lists: Lists<{ FRESH as usize + 1 }>,
}

/// When the earliest timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Earliest {
    None,
    At(u64),
    /// Not before this; to look at this time makes it known better.
    NotBefore(u64),
}

impl Wheel {
    /// An empty wheel, which stands at this time.
    pub(super) fn new(now: u64) -> Self {
        let occupied = [0; LEVELS as usize];
        Self { tick: now >> TICK, waiting: 0, armed: 0, occupied, lists: Lists::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Adds a timer.
    ///
    /// # Safety
    /// It is in no wheel, and stays where it is until it was taken out. Its links are ours until then.
    #[inline]
    pub(super) unsafe fn insert(&mut self, timer: NonNull<Timer>, at: u64) {
        // SAFETY: the caller's.
        unsafe {
            self.note(timer, at);
            self.place(timer, at, self.armed);
        }
    }

    /// Adds a timer for a while that begins at the next look.
    ///
    /// # Safety
    /// As for `insert`.
    #[inline]
    pub(super) unsafe fn insert_fresh(&mut self, timer: NonNull<Timer>, duration: u64) {
        // SAFETY: the caller's.
        unsafe {
            self.note(timer, duration);
            self.lists.push(FRESH, timer);
        }
    }

    /// # Safety
    /// As for `insert`.
    #[inline]
    unsafe fn note(&mut self, timer: NonNull<Timer>, at: u64) {
        self.waiting += 1;
        self.armed += 1;
        let (next, place) = (core::ptr::null_mut(), place_of_next(self.armed));
        // SAFETY: the caller's.
        unsafe { Timer::links(timer).write(TimerLinks { at, next, before: next, place }) };
    }

    /// Whether some wait for the next look to begin.
    #[inline]
    pub(super) fn has_fresh(&self) -> bool {
        !self.lists.is_empty(FRESH)
    }

    /// For those that were armed for a while it begins now. None is later than `last`.
    pub(super) fn settle(&mut self, now: u64, last: u64) {
        let mut row = self.lists.take(FRESH);
        while let Some(timer) = NonNull::new(row) {
            // SAFETY: they were in the wheel, and so are there; they are in no list any more. The link is read before it
            // is written.
            unsafe {
                let TimerLinks { at: duration, next, place, .. } = *links(row);
                let at = now.saturating_add(duration).min(last);
                (*links(row)).at = at;
                self.place(timer, at, order_of(place));
                row = next;
            }
        }
    }

    /// When a timer that waits is due, if that is known.
    ///
    /// # Safety
    /// It is in this wheel, or was.
    pub(super) unsafe fn time_of(&self, timer: NonNull<Timer>) -> Option<u64> {
        // SAFETY: the caller's.
        let TimerLinks { at, place, .. } = unsafe { &*Timer::links(timer) };
        (!matches!(list_at(*place), FRESH | NONE)).then_some(*at)
    }

    /// Notes down in a timer that it is in no wheel.
    ///
    /// # Safety
    /// It is there, and indeed in none.
    #[inline]
    pub(super) unsafe fn leave_out(timer: NonNull<Timer>, at: u64) {
        let (next, place) = (core::ptr::null_mut(), place_of_next(0));
        // SAFETY: the caller's.
        unsafe { Timer::links(timer).write(TimerLinks { at, next, before: next, place }) };
    }

    /// Takes a timer out, and says when it would have been due. `None` if it is in no wheel.
    ///
    /// # Safety
    /// It is in this wheel, or was.
    #[inline]
    pub(super) unsafe fn remove(&mut self, timer: NonNull<Timer>) -> Option<u64> {
        // SAFETY: the caller's.
        unsafe {
            let TimerLinks { at, place, .. } = *Timer::links(timer);
            let list = list_at(place);
            if list == NONE {
                return None;
            }
            self.lists.remove(timer);
            if list < FRONT && self.lists.is_empty(list) {
                let slot = list / WAYS;
                if ways(slot).all(|list| self.lists.is_empty(list)) {
                    self.occupied[(slot / SLOTS) as usize] &= !(1 << (slot % SLOTS));
                }
            }
            self.waiting -= 1;
            Some(at)
        }
    }

    /// A look begins: those that were armed late are among the next.
    pub(super) fn begin_look(&mut self) {
        let row = self.lists.take(LATE);
        // SAFETY: they are in the wheel, and so are there; they are in no list any more.
        unsafe { self.put_in_front(&mut [row]) };
    }

    /// Moves the wheel on to the next tick in which there is something, and not beyond this time: what is due then can be
    /// popped. False if there is none. One tick at a time: what was put in order is at hand when it is called.
    pub(super) fn advance(&mut self, now: u64) -> bool {
        let target = now >> TICK;
        while let Some((level, slot, start)) = self.next_slot().filter(|(.., start)| *start <= target) {
            self.tick = start;
            self.occupied[level as usize] &= !(1 << slot);
            let mut rows = [core::ptr::null_mut(); WAYS as usize];
            for (row, list) in rows.iter_mut().zip(ways(level * SLOTS + slot)) {
                *row = self.lists.take(list);
            }
            if level > 0 {
                // SAFETY: they were in the wheel, and so are there; they are in no list any more.
                rows[0] = unsafe { self.spread(&mut rows) };
            }
            // SAFETY: as above.
            if unsafe { self.put_in_front(&mut rows) } {
                return true;
            }
        }
        self.tick = self.tick.max(target);
        false
    }

    /// Takes out the earliest, if it is due by then and the wheel had been moved there.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<NonNull<Timer>> {
        let first = self.lists.first(FRONT)?;
        // SAFETY: it is in the wheel, and so is there.
        unsafe {
            if (*Timer::links(first)).at > now {
                return None;
            }
            self.lists.remove(first);
        }
        self.waiting -= 1;
        Some(first)
    }

    /// When the earliest is due. What that costs does not depend on how many there are.
    pub(super) fn earliest(&self) -> Earliest {
        self.earliest_after(LOOKS)
    }

    /// The same, looking at as many as it takes.
    pub(super) fn earliest_exactly(&self) -> Option<u64> {
        match self.earliest_after(usize::MAX) {
            Earliest::None => None,
            Earliest::At(at) | Earliest::NotBefore(at) => Some(at),
        }
    }

    fn earliest_after(&self, looks: usize) -> Earliest {
        let first = self.lists.times(FRONT).next();
        let (lists, start) = match self.next_slot() {
            _ if !self.lists.is_empty(LATE) => (LATE..LATE + 1, 0),
            _ if first.is_some() => return first.map_or(Earliest::None, Earliest::At),
            Some((level, slot, start)) => (ways(level * SLOTS + slot), start << TICK),
            None => return Earliest::None,
        };
        let mut times = lists.flat_map(|list| self.lists.times(list));
        let earliest = times.by_ref().take(looks).chain(first).min();
        match times.next() {
            Some(_) => Earliest::NotBefore(start),
            None => earliest.map_or(Earliest::None, Earliest::At),
        }
    }

    /// The level, the number and the first tick of the slot that comes next among those in which there is something.
    #[inline]
    fn next_slot(&self) -> Option<(u32, u32, u64)> {
        let level = self.occupied.iter().position(|slots| *slots != 0)?;
        let slot = self.occupied[level].trailing_zeros();
        let level = level as u32;
        // What is on this level has all higher digits of the wheel's tick.
        let higher = DIGIT * (level + 1);
        let start = (self.tick >> higher << higher) | (u64::from(slot) << (DIGIT * level));
        Some((level, slot, start))
    }

    /// Puts a timer where rules 1 and 2 say.
    ///
    /// # Safety
    /// As for `Lists::push`.
    #[inline]
    unsafe fn place(&mut self, timer: NonNull<Timer>, at: u64, order: u64) {
        let tick = at >> TICK;
        let list = if tick <= self.tick {
            LATE
        } else {
            let level = (tick ^ self.tick).ilog2() / DIGIT;
            let slot = (tick >> (DIGIT * level)) as u32 % SLOTS;
            self.occupied[level as usize] |= 1 << slot;
            (level * SLOTS + slot) * WAYS + order as u32 % WAYS
        };
        // SAFETY: the caller's.
        unsafe { self.lists.push(list, timer) };
    }

    /// Spreads rows over the levels below, and leaves them empty. Those of this very tick are returned, as a row.
    ///
    /// # Safety
    /// As for `Lists::push`, for all of them.
    unsafe fn spread(&mut self, rows: &mut [*mut Timer; WAYS as usize]) -> *mut Timer {
        let mut here = core::ptr::null_mut();
        while rows.iter().any(|row| !row.is_null()) {
            for row in &mut *rows {
                let Some(timer) = NonNull::new(*row) else { continue };
                // SAFETY: the caller's. The link is read before it is written.
                unsafe {
                    let TimerLinks { at, next, place, .. } = *Timer::links(timer);
                    *row = next;
                    if at >> TICK > self.tick {
                        self.place(timer, at, order_of(place));
                    } else {
                        (*Timer::links(timer)).next = here;
                        here = timer.as_ptr();
                    }
                }
            }
        }
        here
    }

    /// Puts rows among those that are called next. Says whether there was anything in them.
    ///
    /// # Safety
    /// As for `Lists::push`, for all of them.
    unsafe fn put_in_front(&mut self, rows: &mut [*mut Timer]) -> bool {
        // SAFETY: the caller's, and what is in front is there.
        unsafe {
            let mut row = sorting::sort(rows);
            if row.is_null() {
                return false;
            }
            if self.lists.last_time(FRONT).is_some_and(|last| (*links(row)).at < last) {
                row = sorting::merge(self.lists.take(FRONT), row);
            }
            self.lists.push_row(FRONT, row);
        }
        true
    }
}

/// The lists of a slot.
#[inline]
fn ways(slot: u32) -> core::ops::Range<u32> {
    slot * WAYS..(slot + 1) * WAYS
}
