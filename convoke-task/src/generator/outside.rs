//! Generators that are polled outside of all tasks, where no frame leads to them: a list of the thread does.
//!
//! A note is in the list of its thread only while [`noted`] runs there, further up on the stack.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr::{self, NonNull};

use convoke_core::raw::sync::thread_local;

/// What the thread knows of a generator that is being polled.
struct Note {
    number: u64,
    exchange: NonNull<()>,
    /// Of the generator in whose body this one is polled.
    around: *const Note,
}

thread_local! {
    /// Of the innermost generator that is being polled, or null.
    static INNERMOST: Cell<*const Note> = Cell::new(ptr::null());
}

/// Takes a note back, also when the body panics.
struct Noted(*const Note);

impl Drop for Noted {
    fn drop(&mut self) {
        INNERMOST.with(|innermost| innermost.set(self.0));
    }
}

/// Polls the body of the generator with this number.
pub(super) fn noted<R>(number: u64, exchange: NonNull<()>, poll: impl FnOnce() -> R) -> R {
    let around = INNERMOST.with(Cell::get);
    let note = Note { number, exchange, around };
    let _noted = Noted(around);
    INNERMOST.with(|innermost| innermost.set(&note));
    poll()
}

/// The exchange of that generator, if it is being polled here.
pub(super) fn find(number: u64) -> Option<NonNull<()>> {
    let mut note = INNERMOST.with(Cell::get);
    loop {
        // SAFETY: it is null, or the note of a `noted` further up on this stack; so are those around it.
        let found = unsafe { note.as_ref() }?;
        if found.number == number {
            return Some(found.exchange);
        }
        note = found.around;
    }
}
