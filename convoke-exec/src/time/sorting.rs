//! Puts a row of timers in the order of their times, in place. Those of one time keep their order, and a row that is in
//! order already, as that of timers which were all armed for the same while is, costs one look at each.

use core::ptr;

use convoke_core::raw::Timer;

use super::lists::links;

/// More halves of a row than there can be timers.
const HALVES: usize = 48;

/// Sorts a row that ends with null.
///
/// # Safety
/// The timers are there, and their links are the caller's.
pub(super) unsafe fn sort(mut row: *mut Timer) -> *mut Timer {
    // Number `i` has the sorted timers of two to the power of `i` runs, or none. Those with higher numbers came before.
    let mut sorted: [*mut Timer; HALVES] = [ptr::null_mut(); HALVES];
    // SAFETY: the caller's.
    unsafe {
        while !row.is_null() {
            let mut run = row;
            row = cut_after_run(row);
            if row.is_null() && sorted.iter().all(|before| before.is_null()) {
                return run;
            }
            for place in &mut sorted {
                if place.is_null() {
                    *place = run;
                    break;
                }
                run = merge(core::mem::replace(place, ptr::null_mut()), run);
            }
        }
        sorted.into_iter().fold(ptr::null_mut(), |after, before| merge(before, after))
    }
}

/// Cuts the row where the times first go back; returns the rest.
///
/// # Safety
/// As for `sort`; the row is not empty.
unsafe fn cut_after_run(mut row: *mut Timer) -> *mut Timer {
    // SAFETY: the caller's.
    unsafe {
        loop {
            let next = (*links(row)).next;
            if next.is_null() || (*links(next)).at < (*links(row)).at {
                (*links(row)).next = ptr::null_mut();
                return next;
            }
            row = next;
        }
    }
}

/// Makes one sorted row of two, either of which may be empty. Of those with the same time the ones of `first` come first.
///
/// # Safety
/// As for `sort`, for both rows.
pub(super) unsafe fn merge(mut first: *mut Timer, mut second: *mut Timer) -> *mut Timer {
    let mut merged = ptr::null_mut();
    let mut end: *mut *mut Timer = &raw mut merged;
    // SAFETY: the caller's; `end` is the room of ours or that of a timer's `next`.
    unsafe {
        while !first.is_null() && !second.is_null() {
            let earlier = if (*links(second)).at < (*links(first)).at { &mut second } else { &mut first };
            let timer = *earlier;
            *earlier = (*links(timer)).next;
            *end = timer;
            end = &raw mut (*links(timer)).next;
        }
        *end = if first.is_null() { second } else { first };
    }
    merged
}
