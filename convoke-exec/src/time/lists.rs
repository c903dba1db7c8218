//! Lists of timers that are linked through the timers themselves. Adding one at the end and removing one from
//! anywhere are a few writes. The timer wheel is made of them.
//!
//! The meaning of the links:
//! 1. A list is a ring: `next` of the last timer is the first, and `before` of the first is the last.
//! 2. The low bits of `place` are the number of the list that a timer is in, or `NONE`. The bits above are
//!    its sequence number, which says in which order timers were armed and never changes.
//! 3. A *chain* is a row of timers in no list, linked through `next` and ended by null. In it only `next`,
//!    `at` and the sequence number are valid.
//! 4. The lists own the links of the timers in them. A timer in a list stays alive and in place until it is
//!    removed: `push` makes its caller promise that.

#![allow(unsafe_code)]

use core::ptr::{self, NonNull};

use convoke_core::raw::{Timer, TimerLinks};

/// Number of bits of a list number.
const LIST_BITS: u32 = 12;
/// The list number of a timer in no list.
pub(super) const NONE: u32 = (1 << LIST_BITS) - 1;

/// Returns the `place` of a timer in no list with this sequence number.
#[inline]
pub(super) fn unlinked_place(order: u64) -> u64 {
    (order << LIST_BITS) | u64::from(NONE)
}

/// Returns the list number in a `place`.
#[inline]
pub(super) fn list_of(place: u64) -> u32 {
    place as u32 & NONE
}

/// Returns the sequence number in a `place`. It orders timers of the same time.
#[inline]
pub(super) fn order_of(place: u64) -> u64 {
    place >> LIST_BITS
}

/// Returns a `place` with the same sequence number in another list.
#[inline]
fn with_list(place: u64, list: u32) -> u64 {
    (place & !u64::from(NONE)) | u64::from(list)
}

/// `COUNT` lists. Boxed, because they are many and a queue is moved while it is built.
pub(super) struct Lists<const COUNT: usize> {
    first: Box<[*mut Timer; COUNT]>,
}

impl<const COUNT: usize> Lists<COUNT> {
    pub(super) fn new() -> Self {
        let first = vec![ptr::null_mut(); COUNT].into_boxed_slice();
        Self { first: first.try_into().expect("the vector has `COUNT` elements") }
    }

    pub(super) fn is_empty(&self, list: u32) -> bool {
        self.first[list as usize].is_null()
    }

    /// Returns the first timer of a list.
    pub(super) fn first(&self, list: u32) -> Option<NonNull<Timer>> {
        NonNull::new(self.first[list as usize])
    }

    /// Iterates over the times of a list, from first to last.
    pub(super) fn times(&self, list: u32) -> impl Iterator<Item = u64> {
        let first = self.first[list as usize];
        let mut next = first;
        core::iter::from_fn(move || {
            if next.is_null() {
                return None;
            }
            // SAFETY: rule 4: the timers of a list are alive, and the iterator borrows the lists.
            let (at, after) = unsafe { ((*links(next)).at, (*links(next)).next) };
            next = if after == first { ptr::null_mut() } else { after };
            Some(at)
        })
    }

    /// Returns the time of the last timer of a list.
    pub(super) fn last_time(&self, list: u32) -> Option<u64> {
        // SAFETY: rule 4: the timers of a list are alive.
        self.first(list).map(|first| unsafe { (*links((*links(first.as_ptr())).before)).at })
    }

    /// Adds a timer at the end.
    ///
    /// # Safety
    /// The timer is in no list, and its `at` and `place` are written. It stays alive and in place, and its
    /// links are not touched by anything else, until it is removed.
    #[inline]
    pub(super) unsafe fn push(&mut self, list: u32, timer: NonNull<Timer>) {
        let timer = timer.as_ptr();
        let first = self.first[list as usize];
        // SAFETY: the caller promises it for this timer, and rule 4 says it for those in the list.
        unsafe {
            (*links(timer)).place = with_list((*links(timer)).place, list);
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

    /// Removes a timer. Returns the list that it was in.
    ///
    /// # Safety
    /// The timer is in one of these lists.
    #[inline]
    pub(super) unsafe fn remove(&mut self, timer: NonNull<Timer>) -> u32 {
        let timer = timer.as_ptr();
        // SAFETY: the caller promises that the timer is in a list; its neighbours are in the same list, and
        // rule 4 says that all of them are alive.
        unsafe {
            let place = (*links(timer)).place;
            let list = list_of(place);
            (*links(timer)).place = with_list(place, NONE);
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

    /// Takes all timers out of a list, as a chain.
    pub(super) fn take(&mut self, list: u32) -> *mut Timer {
        let first = core::mem::replace(&mut self.first[list as usize], ptr::null_mut());
        if !first.is_null() {
            // SAFETY: rule 4: the timers of a list are alive.
            unsafe { (*links((*links(first)).before)).next = ptr::null_mut() };
        }
        first
    }

    /// Adds all timers of a chain at the end.
    ///
    /// # Safety
    /// The contract of `push` holds for each of them.
    pub(super) unsafe fn push_chain(&mut self, list: u32, mut chain: *mut Timer) {
        while let Some(timer) = NonNull::new(chain) {
            // SAFETY: the caller keeps the contract of `push` for each timer. `next` is read before `push`
            // overwrites it.
            unsafe {
                chain = (*links(chain)).next;
                self.push(list, timer);
            }
        }
    }
}

/// Returns a pointer to the links of a timer.
///
/// # Safety
/// `timer` is not null. To use the result, the timer must be alive and the caller must have access to its
/// links.
#[inline]
pub(super) unsafe fn links(timer: *mut Timer) -> *mut TimerLinks {
    debug_assert!(!timer.is_null());
    // SAFETY: the caller promises that it is not null.
    unsafe { Timer::links(NonNull::new_unchecked(timer)) }
}
