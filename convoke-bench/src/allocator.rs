//! The global allocator: forwards to the system's or to mimalloc, and counts while told to.
//!
//! All it adds to an allocation is one relaxed load of [`STATE`] and a predictable branch, the same for every
//! contestant. Counting and weighing are switched on only around what nobody times.
//!
//! The backend must be settled before the first allocation and never change, or memory would go back to an
//! allocator it did not come from. So the environment decides, on the first call; `main` starts the program again
//! with the variable set when the command line wants another backend.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CStr;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mimalloc::MiMalloc;

/// The environment variable that chooses the backend: `system` (or nothing) or `mimalloc`.
pub(crate) const VARIABLE: &str = "CONVOKE_BENCH_ALLOCATOR";
const VARIABLE_FOR_C: &CStr = c"CONVOKE_BENCH_ALLOCATOR";

/// Who really allocates.
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

/// The backend of this process.
pub(crate) fn backend() -> Backend {
    backend_in(STATE.load(Relaxed))
}

/// The allocations (reallocations included, of all threads) during `body`. One caller at a time: the end of one count
/// would end another's.
pub(crate) fn count(body: impl FnOnce()) -> u64 {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = COUNT.load(Relaxed);
    STATE.fetch_or(COUNTING, Relaxed);
    body();
    STATE.fetch_and(!COUNTING, Relaxed);
    COUNT.load(Relaxed) - before
}

/// Weighs, from its beginning to its end, the bytes that are asked for and not given back, by all threads, as the layouts
/// say, without what the backend rounds up. One at a time; it may be counted meanwhile.
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

    /// What was asked for since the beginning and not given back; nothing, if more was given back.
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

/// Like [`backend`], and counts and weighs if that is on: so many calls that allocate, so many bytes more (or less).
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

/// Reads the environment. Every caller gets the same answer, so it does not matter who of several stores it.
#[cold]
fn decide() -> Backend {
    // SAFETY: the name is a C string; nothing in this program writes the environment.
    let value = unsafe { libc::getenv(VARIABLE_FOR_C.as_ptr()) };
    // SAFETY: not null, so a C string of the environment, which stays as it is (see above).
    let mimalloc = !value.is_null() && unsafe { CStr::from_ptr(value) } == c"mimalloc";
    STATE.fetch_or(if mimalloc { MIMALLOC } else { SYSTEM }, Relaxed);
    if mimalloc { Backend::Mimalloc } else { Backend::System }
}

// SAFETY: every call goes unchanged to one backend, which keeps the contract; and it is the same one for the whole
// life of the process (see the top of the file), so memory goes back to where it came from.
unsafe impl GlobalAlloc for Switch {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match backend_for(1, layout.size() as i64) {
            // SAFETY: the caller keeps the contract of this very function.
            Backend::System => unsafe { System.alloc(layout) },
            // SAFETY: as above.
            Backend::Mimalloc => unsafe { MiMalloc.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match backend_for(1, layout.size() as i64) {
            // SAFETY: the caller keeps the contract of this very function.
            Backend::System => unsafe { System.alloc_zeroed(layout) },
            // SAFETY: as above.
            Backend::Mimalloc => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match backend_for(1, size as i64 - layout.size() as i64) {
            // SAFETY: the caller keeps the contract, and the block came from the one backend there is.
            Backend::System => unsafe { System.realloc(block, layout, size) },
            // SAFETY: as above.
            Backend::Mimalloc => unsafe { MiMalloc.realloc(block, layout, size) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match backend_for(0, -(layout.size() as i64)) {
            // SAFETY: the caller keeps the contract, and the block came from the one backend there is.
            Backend::System => unsafe { System.dealloc(block, layout) },
            // SAFETY: as above.
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

    // Other tests may allocate and free meanwhile, so the weight is one that theirs do not come near.
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
