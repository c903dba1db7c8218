//! `Readiness`: what is known about a source, in one word: whether reading or writing may succeed. It is the
//! state machine of this driver, without unsafe code, locks and system calls. Waiters stand in waiting lists
//! (`Line`), each with a lock of its own.
//!
//! ```text
//!                  an event of the kernel
//!   not ready ───────────────────────────► ready
//!       ▲                                    │
//!       └────────────────────────────────────┘
//!         an attempt that would block, or was short,
//!         unless an event came after its check
//! ```
//!
//! 1. The kernel reports each change once (edge-triggered), so no event may be lost. Each event increments
//!    the *tick*. An attempt remembers the word of its check, and clears the bit only if the tick is
//!    unchanged.
//! 2. A waiter takes the lock of its list, checks that the source is not ready, and joins the list before it
//!    releases the lock. The driver records an event in the word first, and then takes the lock and serves
//!    the list. So the second of the two to take the lock sees the other.
//! 3. The lock of a list that never had a waiter is not taken. The first waiter sets a bit of the word by an
//!    atomic exchange, which comes either before that of the event or after it.

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_io::driver::Interest;

/// Reading, or accepting, may succeed.
const READ: usize = 1;
/// Writing may succeed, or a connection has been made or refused.
const WRITE: usize = 2;
/// A short read does not mean that nothing is left: the peer has hung up, the end or an error is still to be
/// read, or there is urgent data.
const MORE: usize = 4;
/// The driver has shut down: nothing is ready, and nothing will be.
const SHUT: usize = 8;
/// There was a watcher: rule 3.
const WATCHED: usize = 16;
/// There was a parked operation: rule 3.
const PARKED: usize = 32;
/// The socket is registered with the kernel.
const ADDED: usize = 64;
/// The unit of the tick, which fills the other bits. An attempt compares the tick with its value before the
/// system call, so it must not wrap around during one. With 57 bits it never does; a 32-bit machine would
/// need 2^25 events during one system call.
const TICK: usize = 128;

/// The mask of the tick.
const TICKS: usize = !(TICK - 1);

/// The readiness of one source.
#[derive(Debug)]
pub struct Readiness {
    word: AtomicUsize,
}

/// A waiting list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Line {
    /// Tasks that are woken and try again themselves.
    Watchers = WATCHED,
    /// Operations that the driver performs.
    Operations = PARKED,
}

/// The lists that may have waiters. The caller takes their locks and serves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the waiters must be served"]
pub struct Lines(usize);

impl Lines {
    /// Returns true if this list is one of them.
    #[inline]
    pub fn has(self, line: Line) -> bool {
        self.0 & line as usize != 0
    }
}

/// An event of the kernel: the bits that it sets in the word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event(usize);

impl Event {
    /// Reading may succeed.
    pub const READABLE: Self = Self(READ);
    /// Writing may succeed.
    pub const WRITABLE: Self = Self(WRITE);
    /// After a short read there is more to read: the end of the stream, or an error.
    pub const MORE: Self = Self(MORE);

    /// Adds `other` if `is_case`.
    #[inline]
    #[must_use = "an event is a value"]
    pub const fn and_if(self, is_case: bool, other: Self) -> Self {
        if is_case { Self(self.0 | other.0) } else { self }
    }

    /// Returns true if this event includes `one`.
    #[inline]
    pub const fn says(self, one: Self) -> bool {
        self.0 & one.0 != 0
    }
}

/// The result of a check that found the source ready: the word at that time. A failed attempt clears nothing
/// that changed since.
#[derive(Clone, Copy, Debug)]
#[must_use = "a failed attempt must be reported with it"]
pub struct Checked(usize);

/// The result of a check that found the source not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// There will be an event.
    NotReady,
    /// The driver has shut down.
    Shut,
}

impl Readiness {
    /// Creates the state of a new source: nothing is known, so an attempt may succeed.
    pub fn new() -> Self {
        Self { word: AtomicUsize::new(READ | WRITE) }
    }

    /// Checks whether an attempt may succeed.
    #[inline]
    pub fn check(&self, interest: Interest) -> Result<Checked, Blocked> {
        let word = self.word.load(Ordering::Acquire);
        if word & (bit(interest) | SHUT) == bit(interest) {
            return Ok(Checked(word));
        }
        Err(if word & SHUT == 0 { Blocked::NotReady } else { Blocked::Shut })
    }

    /// Returns true if an attempt is certain to block.
    #[inline]
    pub fn is_known_to_block(&self, interest: Interest) -> bool {
        self.word.load(Ordering::Relaxed) & (bit(interest) | SHUT) == 0
    }

    /// Reports that an attempt would have blocked.
    #[inline]
    pub fn would_block(&self, interest: Interest, checked: Checked) {
        self.clear(bit(interest), checked);
    }

    /// Reports a short transfer: fewer bytes than requested were available, or fit into the kernel's buffer.
    #[inline]
    pub fn fell_short(&self, interest: Interest, checked: Checked) {
        if checked.0 & MORE == 0 {
            self.clear(bit(interest), checked);
        }
    }

    /// Clears a bit, unless an event came after the check: rule 1.
    #[inline]
    fn clear(&self, bit: usize, checked: Checked) {
        let mut word = checked.0;
        // Relaxed on failure: a waiter checks again under the lock.
        while let Err(now) =
            self.word.compare_exchange_weak(word, word & !bit, Ordering::AcqRel, Ordering::Relaxed)
        {
            if now & TICKS != checked.0 & TICKS {
                return;
            }
            word = now;
        }
    }

    /// Marks the source as not ready. Called before it is registered with the kernel.
    pub fn reset(&self) {
        self.word.fetch_and(!(READ | WRITE), Ordering::AcqRel);
    }

    /// Records an event. Returns the lists to serve.
    #[inline]
    pub fn happened(&self, event: Event) -> Lines {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let next = (word | event.0).wrapping_add(TICK);
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Lines(word),
                Err(now) => word = now,
            }
        }
    }

    /// Notes that the socket is registered with the kernel.
    pub fn set_added(&self) {
        self.word.fetch_or(ADDED, Ordering::AcqRel);
    }

    /// Returns true if the socket is registered with the kernel.
    pub fn is_added(&self) -> bool {
        self.word.load(Ordering::Acquire) & ADDED != 0
    }

    /// Notes that the driver has shut down. The caller then takes the locks of all lists and ends all waits.
    pub fn shut(&self) {
        self.word.fetch_or(SHUT, Ordering::AcqRel);
    }

    /// Returns true if the driver has shut down.
    pub fn is_shut(&self) -> bool {
        self.word.load(Ordering::Acquire) & SHUT != 0
    }

    /// Returns true if the caller, which holds the lock of `line`, may join it and wait for an event.
    /// Otherwise the source is ready or shut down, and the caller checks again.
    #[inline]
    #[must_use = "a caller that may not wait checks again"]
    pub fn may_wait(&self, interest: Interest, line: Line) -> bool {
        let mut word = self.word.load(Ordering::Acquire);
        if word & line as usize == 0 {
            word = self.word.fetch_or(line as usize, Ordering::AcqRel);
        }
        word & (bit(interest) | SHUT) == 0
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Self::new()
    }
}

const fn bit(interest: Interest) -> usize {
    match interest {
        Interest::Read => READ,
        Interest::Write => WRITE,
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn an_event_counts_when_the_tick_wraps_around() {
        let readiness = Readiness::new();
        readiness.word.fetch_or(TICKS, Ordering::Relaxed);
        let checked = readiness.check(Interest::Read).expect("a new source is ready");
        assert!(!readiness.happened(Event::READABLE).has(Line::Operations));
        assert_eq!(readiness.word.load(Ordering::Relaxed) & TICKS, 0, "the tick has wrapped");
        readiness.would_block(Interest::Read, checked);
        assert!(readiness.check(Interest::Read).is_ok(), "an event came since the check");
        let bits = readiness.word.load(Ordering::Relaxed) & !TICKS;
        assert_eq!(bits, READ | WRITE, "the tick does not overflow into the flags");
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn an_attempt_during_which_billions_of_events_came_clears_nothing() {
        for events in [1_usize << 25, 1 << 26, 1 << 32, 1 << 56] {
            let readiness = Readiness::new();
            let checked = readiness.check(Interest::Read).expect("a new source is ready");
            // As if this many events had come.
            readiness.word.fetch_add(events * TICK, Ordering::Relaxed);
            readiness.would_block(Interest::Read, checked);
            assert!(readiness.check(Interest::Read).is_ok(), "{events} events came since the check");
        }
    }
}
