//! How a value gets from a generator's body to its consumer, without an allocation and without a lock.
//!
//! Whoever polls a body has a room for one value on its stack, and notes it down in the thread, with the generator's number,
//! for the time of the poll. Who yields looks there for its number. A yielder may have been carried anywhere; where its
//! generator is not being polled it finds nothing.
//!
//! 1. A note is in the list of its thread only while [`exchange`] runs there, further up on the stack; so it and what it leads
//!    to are there for whoever finds it, and no other thread sees them.
//! 2. A number belongs to one generator, and so to one type of values: it is made once, with that type.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use core::task::Waker;

// Not loom's: it takes no part in anything but that numbers differ.
use std::sync::atomic::{AtomicU64, Ordering};

use convoke_core::raw::sync::thread_local;

/// The number of a generator of `T`s.
pub(super) struct Identity<T> {
    number: u64,
    _values: PhantomData<fn(T) -> T>,
}

impl<T> Identity<T> {
    /// One that there was not before.
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), _values: PhantomData }
    }
}

impl<T> Clone for Identity<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Identity<T> {}

impl<T> fmt::Debug for Identity<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

/// What the thread knows of a generator that is being polled.
struct Note {
    number: u64,
    /// A `Cell<Option<T>>`.
    room: *const (),
    waker: *const Waker,
    /// Of the generator in whose body this one is polled.
    around: *const Note,
}

/// The room for a value, as who yields sees it.
pub(super) struct Room<'a, T> {
    value: &'a Cell<Option<T>>,
    /// With which the body is polled.
    pub(super) waker: &'a Waker,
}

impl<T> Room<'_, T> {
    /// Puts a value there, if there is none.
    #[inline]
    pub(super) fn put(&self, value: T) -> Result<(), T> {
        match self.value.take() {
            None => {
                self.value.set(Some(value));
                Ok(())
            }
            there => {
                self.value.set(there);
                Err(value)
            }
        }
    }
}

thread_local! {
    /// Of the innermost generator that is being polled, or null.
    static INNERMOST: Cell<*const Note> = Cell::new(ptr::null());
}

/// Takes a note back, also when the body panics.
struct Noted(*const Note);

impl Drop for Noted {
    #[inline]
    fn drop(&mut self) {
        INNERMOST.with(|innermost| innermost.set(self.0));
    }
}

/// Polls the body of this generator, and says what it has yielded meanwhile.
#[inline]
pub(super) fn exchange<T, R>(
    identity: Identity<T>,
    waker: &Waker,
    poll: impl FnOnce() -> R,
) -> (R, Option<T>) {
    let value = Cell::new(None::<T>);
    let around = INNERMOST.with(Cell::get);
    let note = Note { number: identity.number, room: ptr::from_ref(&value).cast(), waker, around };
    let noted = Noted(around);
    INNERMOST.with(|innermost| innermost.set(&note));
    let polled = poll();
    drop(noted);
    (polled, value.into_inner())
}

/// Calls `f` with the room of this generator, or `None` if it is not being polled here.
#[inline]
pub(super) fn with_room<T, R>(identity: Identity<T>, f: impl FnOnce(Option<Room<'_, T>>) -> R) -> R {
    let mut note = INNERMOST.with(Cell::get);
    loop {
        // SAFETY: rule 1: it is null, or the note of an `exchange` on this stack; so are those around it.
        let Some(found) = (unsafe { note.as_ref() }) else { return f(None) };
        if found.number == identity.number {
            // SAFETY: rules 1 and 2: `exchange` has put them there, and the room is for values of this type. The
            // references do not leave `f`.
            let room = unsafe { Room { value: &*found.room.cast(), waker: &*found.waker } };
            return f(Some(room));
        }
        note = found.around;
    }
}
