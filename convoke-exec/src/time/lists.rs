//! Lists of timers that are linked through the timers themselves: adding one at the end and taking one out of anywhere
//! are a few writes. The wheel is made of them.
//!
//! The meaning of the links:
//! 1. A list is a ring: `next` of the last is the first, and `before` of the first is the last.
//! 2. The low bits of `place` are the number of the list that a timer is in, or `NONE`; those above say in which order the
//!    timers were armed, and stay as they are.

#![allow(unsafe_code)]

use core::ptr::{self, NonNull};

use convoke_core::raw::{Timer, TimerLinks};

/// Bits of the number of a list.
const LIST: u32 = 12;
/// The number of no list.
pub(super) const NONE: u32 = (1 << LIST) - 1;

/// The place of a timer in no list that is the so-manieth to be armed.
#[inline]
pub(super) fn place_of_next(order: u64) -> u64 {
    (order << LIST) | u64::from(NONE)
}

/// The list of a place.
#[inline]
pub(super) fn list_at(place: u64) -> u32 {
    place as u32 & NONE
}

/// Where a timer comes among those of the same time.
#[inline]
pub(super) fn order_of(place: u64) -> u64 {
    place >> LIST
}

/// The same place in another list.
#[inline]
fn moved(place: u64, list: u32) -> u64 {
    (place & !u64::from(NONE)) | u64::from(list)
}

/// `COUNT` lists. They are many, and so not on anybody's stack while a queue is made and moved to where it stays.
pub(super) struct Lists<const COUNT: usize> {
    first: Box<[*mut Timer; COUNT]>,
}

impl<const COUNT: usize> Lists<COUNT> {
    pub(super) fn new() -> Self {
        let first = vec![ptr::null_mut(); COUNT].into_boxed_slice();
        Self { first: first.try_into().expect("it has that length") }
    }

    pub(super) fn is_empty(&self, list: u32) -> bool {
        self.first[list as usize].is_null()
    }

    /// The first of a list.
    pub(super) fn first(&self, list: u32) -> Option<NonNull<Timer>> {
        NonNull::new(self.first[list as usize])
    }

    /// The times of a list, from its first to its last.
    pub(super) fn times(&self, list: u32) -> impl Iterator<Item = u64> {
        let first = self.first[list as usize];
        let mut next = first;
        core::iter::from_fn(move || {
            if next.is_null() {
                return None;
            }
            // SAFETY: `push`'s caller promised that what is in a list is there; the iterator borrows the lists.
            let (at, after) = unsafe { ((*links(next)).at, (*links(next)).next) };
            next = if after == first { ptr::null_mut() } else { after };
            Some(at)
        })
    }

    /// The time of the last of a list.
    pub(super) fn last_time(&self, list: u32) -> Option<u64> {
        // SAFETY: what is in a list is there.
        self.first(list).map(|first| unsafe { (*links((*links(first.as_ptr())).before)).at })
    }

    /// Adds a timer at the end.
    ///
    /// # Safety
    /// It is in no list, its `at` and its `place` are written, and it stays where it is until it was taken out. Its links are ours until
    /// then.
    #[inline]
    pub(super) unsafe fn push(&mut self, list: u32, timer: NonNull<Timer>) {
        let timer = timer.as_ptr();
        let first = self.first[list as usize];
        // SAFETY: the caller's, for this one and for those in the list.
        unsafe {
            (*links(timer)).place = moved((*links(timer)).place, list);
            if first.is_null() {
                (*links(timer)).next = timer;
                (*links(timer)).before = timer;
                self.first[list as usize] = timer;
                return;
            }
            let last = (*links(first)).before;
            (*links(timer)).next = first;
            (*links(timer)).before = last;
            (*links(last)).next = timer;
            (*links(first)).before = timer;
        }
    }

    /// Takes a timer out. Says which list it was in.
    ///
    /// # Safety
    /// It is in one of these lists.
    #[inline]
    pub(super) unsafe fn remove(&mut self, timer: NonNull<Timer>) -> u32 {
        let timer = timer.as_ptr();
        // SAFETY: the caller's; those beside it are in the same list, and so are there.
        unsafe {
            let place = (*links(timer)).place;
            let list = list_at(place);
            (*links(timer)).place = moved(place, NONE);
            let (next, before) = ((*links(timer)).next, (*links(timer)).before);
            if next == timer {
                self.first[list as usize] = ptr::null_mut();
            } else {
                (*links(before)).next = next;
                (*links(next)).before = before;
                if self.first[list as usize] == timer {
                    self.first[list as usize] = next;
                }
            }
            list
        }
    }

    /// Takes all out of a list: a row that ends with null, in which only `next`, `at` and the order of `place` mean something.
    pub(super) fn take(&mut self, list: u32) -> *mut Timer {
        let first = core::mem::replace(&mut self.first[list as usize], ptr::null_mut());
        if !first.is_null() {
            // SAFETY: what is in a list is there.
            unsafe { (*links((*links(first)).before)).next = ptr::null_mut() };
        }
        first
    }

    /// Adds all of a row at the end.
    ///
    /// # Safety
    /// As for `push`, for all of them.
    pub(super) unsafe fn push_row(&mut self, list: u32, mut row: *mut Timer) {
        while let Some(timer) = NonNull::new(row) {
            // SAFETY: the caller's. The link is read before it is written.
            unsafe {
                row = (*links(row)).next;
                self.push(list, timer);
            }
        }
    }
}

/// The links of a timer that is not null.
///
/// # Safety
/// For what is done with them: the timer is there, and its links are the caller's.
#[inline]
pub(super) unsafe fn links(timer: *mut Timer) -> *mut TimerLinks {
    debug_assert!(!timer.is_null());
    // SAFETY: the caller's.
    unsafe { Timer::links(NonNull::new_unchecked(timer)) }
}
