//! Puts a row of timers in the order of their times, in place. Those of one time keep their order, and a row that is in
//! order already, as that of timers which were all armed for the same while is, costs one look at each.

use core::mem::MaybeUninit;
use core::{ptr, slice};

use convoke_core::raw::Timer;

use super::lists::links;

/// So many are sorted at once, by keys in an array: the timers themselves lie all over the memory, and are looked at once.
const AT_ONCE: usize = 512;
/// Bits of a key that say which one it is.
const INDEX: u32 = AT_ONCE.ilog2();
/// Those beside which a key has room for times, which is half a year before and after, are sorted at once.
const HALF: u64 = 1 << (63 - INDEX);
/// More pieces of a row than there can be, as a power of two.
const PIECES: usize = 48;

/// Sorts a row that ends with null.
///
/// # Safety
/// The timers are there, and their links are the caller's.
pub(super) unsafe fn sort(mut row: *mut Timer) -> *mut Timer {
    // Number `i` has the sorted timers of two to the power of `i` pieces, or none. Those with higher numbers came before.
    let mut sorted: [*mut Timer; PIECES] = [ptr::null_mut(); PIECES];
    // SAFETY: the caller's.
    unsafe {
        while !row.is_null() {
            let (mut piece, rest) = cut_piece(row);
            row = rest;
            if row.is_null() && sorted.iter().all(|before| before.is_null()) {
                return piece;
            }
            for place in &mut sorted {
                if place.is_null() {
                    *place = piece;
                    break;
                }
                piece = merge(core::mem::replace(place, ptr::null_mut()), piece);
            }
        }
        sorted.into_iter().fold(ptr::null_mut(), |after, before| merge(before, after))
    }
}

/// Cuts off as many as can be sorted at once, or more that are in order already. Returns them, sorted, and the rest.
///
/// # Safety
/// As for `sort`; the row is not empty.
unsafe fn cut_piece(row: *mut Timer) -> (*mut Timer, *mut Timer) {
    // Written as far as they are used: most rows are short.
    let mut keys = [const { MaybeUninit::uninit() }; AT_ONCE];
    let mut timers = [const { MaybeUninit::uninit() }; AT_ONCE];
    // SAFETY: the caller's; while `has_key` is true, and so whenever the row is not in order, all that were counted have been
    // written.
    unsafe {
        let base = (*links(row)).at.saturating_sub(HALF);
        let (mut last, mut next, mut before) = (row, row, 0);
        let (mut count, mut in_order, mut has_key) = (0, true, true);
        while !next.is_null() {
            let at = (*links(next)).at;
            let goes_on = in_order && at >= before;
            has_key &= count < AT_ONCE && (base..base + 2 * HALF).contains(&at);
            if has_key {
                keys[count].write(((at - base) << INDEX) | count as u64);
                timers[count].write(next);
            } else if !goes_on {
                break;
            }
            (in_order, before, last, count) = (goes_on, at, next, count + 1);
            next = (*links(next)).next;
        }
        (*links(last)).next = ptr::null_mut();
        if in_order {
            return (row, next);
        }
        let keys = slice::from_raw_parts_mut(keys.as_mut_ptr().cast::<u64>(), count);
        keys.sort_unstable();
        (link(keys, slice::from_raw_parts(timers.as_ptr().cast(), count)), next)
    }
}

/// Links timers in the order of their keys.
///
/// # Safety
/// As for `sort`.
unsafe fn link(keys: &[u64], timers: &[*mut Timer]) -> *mut Timer {
    let mut row = ptr::null_mut();
    for key in keys.iter().rev() {
        let timer = timers[(*key % AT_ONCE as u64) as usize];
        // SAFETY: the caller's.
        unsafe { (*links(timer)).next = row };
        row = timer;
    }
    row
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
