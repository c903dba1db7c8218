//! The global allocator: forwards to the system's or to mimalloc, and counts on request.
//!
//! It adds one relaxed load of [`STATE`] and a predictable branch to an allocation, for every contestant
//! alike. Counting and weighing are on only around code that is not timed.
//!
//! The backend must be chosen before the first allocation and never change, or memory would be freed by an
//! allocator that it did not come from. So the first call reads it from the environment; `main` restarts the
//! program with the variable set if the command line asks for another backend.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CStr;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mimalloc::MiMalloc;

/// The environment variable that chooses the backend: `system` (or nothing) or `mimalloc`.
pub(crate) const VARIABLE: &str = "CONVOKE_BENCH_ALLOCATOR";
const VARIABLE_FOR_C: &CStr = c"CONVOKE_BENCH_ALLOCATOR";

/// The allocator that the calls are forwarded to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Backend {
    System,
    Mimalloc,
}

impl Backend {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Mimalloc => "mimalloc",
        }
    }
}

/// Returns the backend of this process.
pub(crate) fn backend() -> Backend {
    backend_in(STATE.load(Relaxed))
}

/// Returns the number of allocations (including reallocations, of all threads) during `body`. Callers are
/// serialised: the end of one count would end another.
pub(crate) fn count(body: impl FnOnce()) -> u64 {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = COUNT.load(Relaxed);
    STATE.fetch_or(COUNTING, Relaxed);
    body();
    STATE.fetch_and(!COUNTING, Relaxed);
    COUNT.load(Relaxed) - before
}

/// A measurement of the bytes that all threads allocate and do not free, from its start to its end: as the
/// layouts say, without what the backend rounds up. One at a time; counting may be on meanwhile.
pub(crate) struct Weighing {
    before: i64,
    _turn: MutexGuard<'static, ()>,
}

impl Weighing {
    pub(crate) fn begin() -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        STATE.fetch_or(WEIGHING, Relaxed);
        Self { before: WEIGHT.load(Relaxed), _turn: turn }
    }

    /// Ends the measurement. Returns the bytes that were allocated and not freed, or zero if more were freed.
    pub(crate) fn end(self) -> u64 {
        STATE.fetch_and(!WEIGHING, Relaxed);
        (WEIGHT.load(Relaxed) - self.before).max(0).unsigned_abs()
    }
}

/// The allocator to declare as `#[global_allocator]`.
#[derive(Debug)]
pub(crate) struct Switch;

/// One of `UNDECIDED`, `SYSTEM` and `MIMALLOC` in the low bits, `COUNTING` and `WEIGHING` above them.
static STATE: AtomicU8 = AtomicU8::new(UNDECIDED);
static COUNT: AtomicU64 = AtomicU64::new(0);
static WEIGHT: AtomicI64 = AtomicI64::new(0);

const UNDECIDED: u8 = 0;
const SYSTEM: u8 = 1;
const MIMALLOC: u8 = 2;
const COUNTING: u8 = 4;
const WEIGHING: u8 = 8;

#[inline]
fn backend_in(state: u8) -> Backend {
    match state & !(COUNTING | WEIGHING) {
        SYSTEM => Backend::System,
        MIMALLOC => Backend::Mimalloc,
        _ => decide(),
    }
}

/// Returns the backend like [`backend`], and adds to the count and the weight if they are on.
#[inline]
fn backend_for(allocations: u64, bytes: i64) -> Backend {
    let state = STATE.load(Relaxed);
    if state & (COUNTING | WEIGHING) != 0 {
        note(state, allocations, bytes);
    }
    backend_in(state)
}

#[cold]
fn note(state: u8, allocations: u64, bytes: i64) {
    if state & COUNTING != 0 {
        COUNT.fetch_add(allocations, Relaxed);
    }
    if state & WEIGHING != 0 {
        WEIGHT.fetch_add(bytes, Relaxed);
    }
}

/// Reads the environment. All callers get the same answer, so it does not matter which of them stores it.
#[cold]
fn decide() -> Backend {
    // SAFETY: the name is a C string; nothing in this program writes the environment.
    let value = unsafe { libc::getenv(VARIABLE_FOR_C.as_ptr()) };
    // SAFETY: not null, so it is a C string of the environment, which nothing in this program changes.
    let mimalloc = !value.is_null() && unsafe { CStr::from_ptr(value) } == c"mimalloc";
    STATE.fetch_or(if mimalloc { MIMALLOC } else { SYSTEM }, Relaxed);
    if mimalloc { Backend::Mimalloc } else { Backend::System }
}

// SAFETY: every call goes unchanged to one backend, which upholds the contract. The backend never changes
// during the process (`decide` always gives the same answer), so memory is freed where it was allocated.
unsafe impl GlobalAlloc for Switch {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match backend_for(1, layout.size() as i64) {
            // SAFETY: the caller upholds the contract of this very function.
            Backend::System => unsafe { System.alloc(layout) },
            // SAFETY: the caller upholds the contract of this very function.
            Backend::Mimalloc => unsafe { MiMalloc.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match backend_for(1, layout.size() as i64) {
            // SAFETY: the caller upholds the contract of this very function.
            Backend::System => unsafe { System.alloc_zeroed(layout) },
            // SAFETY: the caller upholds the contract of this very function.
            Backend::Mimalloc => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match backend_for(1, size as i64 - layout.size() as i64) {
            // SAFETY: the caller upholds the contract, and the block came from the only backend of this
            // process.
            Backend::System => unsafe { System.realloc(block, layout, size) },
            // SAFETY: the caller upholds the contract, and the block came from the only backend of this
            // process.
            Backend::Mimalloc => unsafe { MiMalloc.realloc(block, layout, size) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match backend_for(0, -(layout.size() as i64)) {
            // SAFETY: the caller upholds the contract, and the block came from the only backend of this
            // process.
            Backend::System => unsafe { System.dealloc(block, layout) },
            // SAFETY: the caller upholds the contract, and the block came from the only backend of this
            // process.
            Backend::Mimalloc => unsafe { MiMalloc.dealloc(block, layout) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    // Other tests may allocate meanwhile, so the counts are only bounded from below.
    #[test]
    fn counts_boxes_and_growing_vectors() {
        let boxes = count(|| (0..1000).for_each(|number| drop(black_box(Box::new(number)))));
        assert!(boxes >= 1000, "{boxes}");
        let growth = count(|| {
            let mut numbers = Vec::with_capacity(1);
            (0..1024).for_each(|number| numbers.push(black_box(number)));
        });
        assert!(growth >= 5, "{growth}");
    }

    // Other tests may allocate and free meanwhile, so the weight is much larger than theirs.
    #[test]
    fn weighs_what_is_not_given_back() {
        const HEAVY: u64 = 1 << 28;
        let weighing = Weighing::begin();
        drop(black_box(Vec::<u8>::with_capacity(2 * HEAVY as usize)));
        let kept = black_box(Vec::<u8>::with_capacity(HEAVY as usize));
        let bytes = weighing.end();
        drop(kept);
        assert!((HEAVY / 2..HEAVY + HEAVY / 2).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_test_run_uses_the_backend_its_environment_names() {
        let named = std::env::var(VARIABLE).is_ok_and(|value| value == "mimalloc");
        assert_eq!(backend() == Backend::Mimalloc, named);
    }
}
