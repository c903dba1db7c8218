//! Generators that are polled outside of tasks, where no frame leads to them. A list of the thread does
//! instead.
//!
//! Rule 1: an entry is in the list of its thread only while the [`listed`] that made it runs there, below on
//! the same stack.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr::{self, NonNull};

use convoke_core::raw::sync::thread_local;

/// Entry of a generator that is being polled on this thread.
struct Entry {
    number: u64,
    exchange: NonNull<()>,
    /// The entry of the generator in whose body this one is polled, or null.
    outer: *const Entry,
}

thread_local! {
    /// The entry of the innermost generator that is being polled, or null.
    static INNERMOST: Cell<*const Entry> = Cell::new(ptr::null());
}

/// Guard that removes an entry, also when the body panics.
struct Listed(*const Entry);

impl Drop for Listed {
    fn drop(&mut self) {
        INNERMOST.with(|innermost| innermost.set(self.0));
    }
}

/// Polls the body of the generator with this number, with an entry in the list of this thread.
pub(super) fn listed<R>(number: u64, exchange: NonNull<()>, poll: impl FnOnce() -> R) -> R {
    let outer = INNERMOST.with(Cell::get);
    let entry = Entry { number, exchange, outer };
    let _listed = Listed(outer);
    INNERMOST.with(|innermost| innermost.set(&entry));
    poll()
}

/// Returns the exchange of the generator with this number, if it is being polled on this thread outside of
/// tasks.
pub(super) fn find(number: u64) -> Option<NonNull<()>> {
    let mut entry = INNERMOST.with(Cell::get);
    loop {
        // SAFETY: rule 1: it is null, or the entry of a `listed` that runs below on this stack.
        let found = unsafe { entry.as_ref() }?;
        if found.number == number {
            return Some(found.exchange);
        }
        entry = found.outer;
    }
}
