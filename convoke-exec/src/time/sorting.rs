//! Sorts timers by time; those of the same time in the order in which they were armed. Works on the chains of
//! `lists`.

#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::{ptr, slice};

use convoke_core::raw::Timer;

use super::lists::{NONE, links};

/// Number of timers that are sorted at once, by keys in an array: the timers themselves are spread over the
/// memory.
const RUN: usize = 512;
/// Binary logarithm of a number of runs that cannot be reached.
const RUN_LEVELS: usize = 48;

/// Merges chains into one sorted chain, and leaves them empty.
///
/// # Safety
/// The timers in the chains are alive, and nothing else has access to their links.
pub(super) unsafe fn sort(chains: &mut [*mut Timer]) -> *mut Timer {
    // `sorted[i]` holds the sorted timers of two to the power of `i` runs, or none.
    let mut sorted: [*mut Timer; RUN_LEVELS] = [ptr::null_mut(); RUN_LEVELS];
    // SAFETY: the caller promises access to all timers in the chains, and the result of each step holds
    // only such timers.
    unsafe {
        let first = take_run(chains);
        if chains.iter().all(|chain| chain.is_null()) {
            return first;
        }
        sorted[0] = first;
        while chains.iter().any(|chain| !chain.is_null()) {
            let mut run = take_run(chains);
            for slot in &mut sorted {
                if slot.is_null() {
                    *slot = run;
                    break;
                }
                run = merge(core::mem::replace(slot, ptr::null_mut()), run);
            }
        }
        sorted.into_iter().fold(ptr::null_mut(), |after, before| merge(before, after))
    }
}

/// Takes up to `RUN` timers from all chains in turn, so that the memory accesses of several chains overlap.
/// Returns them as a sorted chain.
///
/// # Safety
/// As for `sort`.
unsafe fn take_run(chains: &mut [*mut Timer]) -> *mut Timer {
    // Not initialised as a whole: most runs are short.
    let mut keys = [const { MaybeUninit::<u128>::uninit() }; RUN];
    let mut timers = [const { MaybeUninit::<*mut Timer>::uninit() }; RUN];
    let mut count = 0;
    // SAFETY: the caller promises access to the timers in the chains. The first `count` elements of both
    // arrays are written.
    unsafe {
        while count + chains.len() <= RUN && chains.iter().any(|chain| !chain.is_null()) {
            for chain in &mut *chains {
                if chain.is_null() {
                    continue;
                }
                let (at, place, next) = ((*links(*chain)).at, (*links(*chain)).place, (*links(*chain)).next);
                // The index takes the bits in which a place has the number of its list.
                let which = (place & !u64::from(NONE)) | count as u64;
                keys[count].write((u128::from(at) << 64) | u128::from(which));
                timers[count].write(*chain);
                count += 1;
                *chain = next;
            }
        }
        let keys = slice::from_raw_parts_mut(keys.as_mut_ptr().cast::<u128>(), count);
        keys.sort_unstable();
        let timers = slice::from_raw_parts(timers.as_ptr().cast::<*mut Timer>(), count);
        let mut sorted = ptr::null_mut();
        for key in keys.iter().rev() {
            let timer = timers[(*key as u32 & NONE) as usize];
            (*links(timer)).next = sorted;
            sorted = timer;
        }
        sorted
    }
}

/// Returns true if `first` comes before `second`.
///
/// # Safety
/// Both timers are alive, and nothing else has access to their links.
#[inline]
unsafe fn comes_before(first: *mut Timer, second: *mut Timer) -> bool {
    // SAFETY: the caller promises access to both. Sequence numbers differ, so the list numbers in the low
    // bits of the places do not matter.
    unsafe { ((*links(first)).at, (*links(first)).place) < ((*links(second)).at, (*links(second)).place) }
}

/// Merges two sorted chains, either of which may be empty.
///
/// # Safety
/// As for `sort`, for both chains.
pub(super) unsafe fn merge(mut first: *mut Timer, mut second: *mut Timer) -> *mut Timer {
    let mut merged = ptr::null_mut();
    let mut end: *mut *mut Timer = &raw mut merged;
    // SAFETY: the caller promises access to the timers in both chains; `end` points to `merged` or to the
    // `next` of such a timer.
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
