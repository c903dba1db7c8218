//! The timers of a queue, earliest first: a pairing heap whose links lie in the timers themselves. It allocates nothing,
//! adding is a comparison, and taking one out, from the top or from the middle, is a logarithm of them in the long run.
//!
//! The meaning of the links:
//! 1. `child` is the first of those below; `next` is the one after it below the same parent.
//! 2. `before` is what points to it by `child` or `next`; null for the top.
//! 3. Nobody below is earlier than what is above.

use core::ptr::{self, NonNull};
use std::time::Instant;

use convoke_core::raw::{Timer, TimerLinks};

pub(super) struct Heap {
    top: *mut Timer,
    inserted: u64,
}

impl Heap {
    pub(super) const fn new() -> Self {
        Self { top: ptr::null_mut(), inserted: 0 }
    }

    /// How many have ever been added: the next one's place in the order.
    pub(super) fn inserted(&self) -> u64 {
        self.inserted
    }

    /// When the earliest one is due.
    pub(super) fn earliest(&self) -> Option<Instant> {
        // SAFETY: `insert`'s caller promised that what is in the heap is there.
        NonNull::new(self.top).map(|top| unsafe { (*Timer::links(top)).at })
    }

    /// Adds a timer.
    ///
    /// # Safety
    /// It is in no heap, and stays where it is until it was taken out. Its links are ours until then.
    pub(super) unsafe fn insert(&mut self, timer: NonNull<Timer>, at: Instant) {
        // SAFETY: the caller's.
        unsafe {
            Timer::links(timer).write(alone(at, self.inserted, true));
            self.top = merge(self.top, timer.as_ptr());
        }
        self.inserted += 1;
    }

    /// Notes down in a timer that it is in no heap.
    ///
    /// # Safety
    /// It is there, and indeed in none.
    pub(super) unsafe fn leave_out(timer: NonNull<Timer>, at: Instant) {
        // SAFETY: the caller's.
        unsafe { Timer::links(timer).write(alone(at, 0, false)) };
    }

    /// Takes the earliest out if it is due and is one of the first `inserted`.
    pub(super) fn pop_due(&mut self, now: Instant, inserted: u64) -> Option<NonNull<Timer>> {
        let top = NonNull::new(self.top)?;
        // SAFETY: it is in this heap, and so is there.
        let (at, order) = unsafe { ((*Timer::links(top)).at, (*Timer::links(top)).order) };
        if at <= now && order < inserted { self.pop() } else { None }
    }

    /// Takes the earliest out.
    pub(super) fn pop(&mut self) -> Option<NonNull<Timer>> {
        let top = NonNull::new(self.top)?;
        // SAFETY: it is in this heap.
        unsafe { self.remove(top) };
        Some(top)
    }

    /// Takes a timer out.
    ///
    /// # Safety
    /// It is in this heap.
    pub(super) unsafe fn remove(&mut self, timer: NonNull<Timer>) {
        // SAFETY: all that is reached is in this heap, and so is there.
        unsafe {
            let links = Timer::links(timer);
            (*links).armed = false;
            let below = merge_all((*links).child);
            if timer.as_ptr() == self.top {
                self.top = below;
                return;
            }
            let before = at((*links).before);
            if (*before).child == timer.as_ptr() {
                (*before).child = (*links).next;
            } else {
                (*before).next = (*links).next;
            }
            if !(*links).next.is_null() {
                (*at((*links).next)).before = (*links).before;
            }
            self.top = merge(self.top, below);
        }
    }
}

fn alone(at: Instant, order: u64, armed: bool) -> TimerLinks {
    let none = ptr::null_mut();
    TimerLinks { at, order, child: none, next: none, before: none, armed }
}

/// The links of a timer that is not null.
///
/// # Safety
/// The timer is in a heap that the caller has to himself.
unsafe fn at(timer: *mut Timer) -> *mut TimerLinks {
    debug_assert!(!timer.is_null());
    // SAFETY: the caller's.
    unsafe { Timer::links(NonNull::new_unchecked(timer)) }
}

/// Makes one heap of two, either of which may be empty.
///
/// # Safety
/// Both are tops, and the caller's alone.
unsafe fn merge(one: *mut Timer, other: *mut Timer) -> *mut Timer {
    if one.is_null() || other.is_null() {
        return if one.is_null() { other } else { one };
    }
    // SAFETY: the caller's.
    unsafe {
        let first = ((*at(one)).at, (*at(one)).order) <= ((*at(other)).at, (*at(other)).order);
        let (above, below) = if first { (one, other) } else { (other, one) };
        let next = (*at(above)).child;
        if !next.is_null() {
            (*at(next)).before = below;
        }
        (*at(below)).next = next;
        (*at(below)).before = above;
        (*at(above)).child = below;
        above
    }
}

/// Makes one heap of a row of children: in pairs from the front, then the pairs from the back.
///
/// # Safety
/// The row is the caller's alone, and cut off from its parent.
unsafe fn merge_all(mut row: *mut Timer) -> *mut Timer {
    let mut pairs: *mut Timer = ptr::null_mut();
    // SAFETY: the caller's.
    unsafe {
        while !row.is_null() {
            let one = row;
            let other = cut(one);
            row = if other.is_null() { other } else { cut(other) };
            let pair = merge(one, other);
            (*at(pair)).next = pairs;
            pairs = pair;
        }
        let mut all = ptr::null_mut();
        while !pairs.is_null() {
            let rest = cut(pairs);
            all = merge(all, pairs);
            pairs = rest;
        }
        all
    }
}

/// Makes a top of the first of a row; returns the rest of the row.
///
/// # Safety
/// As for `merge_all`.
unsafe fn cut(timer: *mut Timer) -> *mut Timer {
    // SAFETY: the caller's.
    unsafe {
        (*at(timer)).before = ptr::null_mut();
        core::mem::replace(&mut (*at(timer)).next, ptr::null_mut())
    }
}
