//! Puts timers in the order of their times; those of one time in the order in which they were armed.

#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::{ptr, slice};

use convoke_core::raw::Timer;

use super::lists::{NONE, links};

/// So many are sorted at once, by keys in an array: the timers themselves lie all over the memory.
const AT_ONCE: usize = 512;
/// More pieces than there can be, as a power of two.
const PIECES: usize = 48;

/// Makes one sorted row of rows that end with null, and leaves them empty.
///
/// # Safety
/// The timers are there, and their links are the caller's.
pub(super) unsafe fn sort(rows: &mut [*mut Timer]) -> *mut Timer {
    // Number `i` has the sorted timers of two to the power of `i` pieces, or none.
    let mut sorted: [*mut Timer; PIECES] = [ptr::null_mut(); PIECES];
    // SAFETY: the caller's.
    unsafe {
        let first = take_piece(rows);
        if rows.iter().all(|row| row.is_null()) {
            return first;
        }
        sorted[0] = first;
        while rows.iter().any(|row| !row.is_null()) {
            let mut piece = take_piece(rows);
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

/// Takes as many as are sorted at once from all rows by turns: while one is being fetched from far away the others are too.
/// Returns them, sorted.
///
/// # Safety
/// As for `sort`.
unsafe fn take_piece(rows: &mut [*mut Timer]) -> *mut Timer {
    // Written as far as they are used: most rows are short.
    let mut keys = [const { MaybeUninit::<u128>::uninit() }; AT_ONCE];
    let mut timers = [const { MaybeUninit::<*mut Timer>::uninit() }; AT_ONCE];
    let mut count = 0;
    // SAFETY: the caller's; as many as were counted have been written.
    unsafe {
        while count + rows.len() <= AT_ONCE && rows.iter().any(|row| !row.is_null()) {
            for row in &mut *rows {
                if row.is_null() {
                    continue;
                }
                let (at, place, next) = ((*links(*row)).at, (*links(*row)).place, (*links(*row)).next);
                // Its own number stands where the place has that of a list.
                let which = (place & !u64::from(NONE)) | count as u64;
                keys[count].write((u128::from(at) << 64) | u128::from(which));
                timers[count].write(*row);
                count += 1;
                *row = next;
            }
        }
        let keys = slice::from_raw_parts_mut(keys.as_mut_ptr().cast::<u128>(), count);
        keys.sort_unstable();
        let timers = slice::from_raw_parts(timers.as_ptr().cast::<*mut Timer>(), count);
        let mut row = ptr::null_mut();
        for key in keys.iter().rev() {
            let timer = timers[(*key as u32 & NONE) as usize];
            (*links(timer)).next = row;
            row = timer;
        }
        row
    }
}

/// Whether the first of two comes before the second.
///
/// # Safety
/// Both are there, and their links are the caller's.
#[inline]
unsafe fn comes_before(first: *mut Timer, second: *mut Timer) -> bool {
    // SAFETY: the caller's. No two were armed at once, so the list in the place does not count.
    unsafe { ((*links(first)).at, (*links(first)).place) < ((*links(second)).at, (*links(second)).place) }
}

/// Makes one sorted row of two, either of which may be empty.
///
/// # Safety
/// As for `sort`, for both rows.
pub(super) unsafe fn merge(mut first: *mut Timer, mut second: *mut Timer) -> *mut Timer {
    let mut merged = ptr::null_mut();
    let mut end: *mut *mut Timer = &raw mut merged;
    // SAFETY: the caller's; `end` is the room of ours or that of a timer's `next`.
    unsafe {
        while !first.is_null() && !second.is_null() {
            let earlier = if comes_before(second, first) { &mut second } else { &mut first };
            let timer = *earlier;
            *earlier = (*links(timer)).next;
            *end = timer;
            end = &raw mut (*links(timer)).next;
        }
        *end = if first.is_null() { second } else { first };
    }
    merged
}
