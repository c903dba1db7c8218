//! Sorts timers by time; those of the same time in the order in which they were armed. Works on the chains of
//! `lists`.

#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::slice;

use super::lists::{Linked, NONE};

/// Number of timers that are sorted at once, by keys in an array: the timers themselves are spread over the
/// memory.
const RUN: usize = 512;
/// Binary logarithm of a number of runs that cannot be reached.
const RUN_LEVELS: usize = 48;

/// Merges chains into one sorted chain, and leaves them empty.
pub(super) fn sort(chains: &mut [Option<Linked>]) -> Option<Linked> {
    let first = take_run(chains);
    if chains.iter().all(Option::is_none) {
        return first;
    }
    // `sorted[i]` holds the sorted timers of two to the power of `i` runs, or none.
    let mut sorted: [Option<Linked>; RUN_LEVELS] = [None; RUN_LEVELS];
    sorted[0] = first;
    while chains.iter().any(Option::is_some) {
        let mut run = take_run(chains);
        for slot in &mut sorted {
            match slot.take() {
                None => {
                    *slot = run;
                    break;
                }
                before => run = merge(before, run),
            }
        }
    }
    sorted.into_iter().fold(None, |after, before| merge(before, after))
}

/// Takes up to `RUN` timers from all chains in turn, so that the memory accesses of several chains overlap.
/// Returns them as a sorted chain.
fn take_run(chains: &mut [Option<Linked>]) -> Option<Linked> {
    let mut keys = Filled::<u128>::new();
    let mut timers = Filled::<Linked>::new();
    while timers.count + chains.len() <= RUN && chains.iter().any(Option::is_some) {
        for chain in &mut *chains {
            let Some(timer) = *chain else { continue };
            // The index takes the bits in which a position has the number of its list.
            let which = timer.shifted_order() | timers.count as u64;
            keys.push((u128::from(timer.at()) << 64) | u128::from(which));
            timers.push(timer);
            *chain = timer.next();
        }
    }
    keys.as_mut_slice().sort_unstable();
    let mut sorted = None;
    for key in keys.as_mut_slice().iter().rev() {
        let timer = timers.as_mut_slice()[(*key as u32 & NONE) as usize];
        timer.set_next(sorted);
        sorted = Some(timer);
    }
    sorted
}

/// An array of which the first `count` elements are filled. The rest is not initialised: most runs are short.
struct Filled<T> {
    elements: [MaybeUninit<T>; RUN],
    count: usize,
}

impl<T: Copy> Filled<T> {
    #[inline]
    fn new() -> Self {
        Self { elements: [const { MaybeUninit::uninit() }; RUN], count: 0 }
    }

    #[inline]
    fn push(&mut self, element: T) {
        self.elements[self.count].write(element);
        self.count += 1;
    }

    #[inline]
    fn as_mut_slice(&mut self) -> &mut [T] {
        let filled = &mut self.elements[..self.count];
        // SAFETY: `push`, the only function that counts elements, has written each of these before.
        unsafe { slice::from_raw_parts_mut(filled.as_mut_ptr().cast::<T>(), filled.len()) }
    }
}

/// Returns true if `first` comes before `second`.
#[inline]
fn comes_before(first: Linked, second: Linked) -> bool {
    (first.at(), first.order()) < (second.at(), second.order())
}

/// Merges two sorted chains, either of which may be empty.
pub(super) fn merge(mut first: Option<Linked>, mut second: Option<Linked>) -> Option<Linked> {
    let (mut merged, mut last): (Option<Linked>, Option<Linked>) = (None, None);
    loop {
        let next = match (first, second) {
            (Some(one), Some(other)) => {
                let earlier = if comes_before(other, one) { &mut second } else { &mut first };
                let timer = *earlier;
                *earlier = timer.and_then(Linked::next);
                timer
            }
            (rest, None) | (None, rest) => {
                match last {
                    Some(last) => last.set_next(rest),
                    None => merged = rest,
                }
                return merged;
            }
        };
        match last {
            Some(last) => last.set_next(next),
            None => merged = next,
        }
        last = next;
    }
}
