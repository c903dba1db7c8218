//! What is known about a source: whether reading or writing may succeed, in one word. The state machine of this driver; no
//! unsafe, no lock, no system call. Those who wait until it may stand in lines, each with a lock of its own.
//!
//! ```text
//!                  an event of the kernel
//!   not ready ───────────────────────────► ready
//!       ▲                                    │
//!       └────────────────────────────────────┘
//!         an attempt that would block, or fell short;
//!         unless an event came since the look before it
//! ```
//!
//! 1. The kernel says each thing once (edges), so no event may be lost. An event counts the *tick* up; who clears has looked
//!    before his attempt, and clears nothing if the tick is another by now.
//! 2. Who waits has the lock of his line, sees that the source is not ready, and is in the line before he gives the lock back. An
//!    event is put into the word first; then the lock is taken and those who wait are served. So whichever has the lock second
//!    sees the other.
//! 3. A line that nobody has ever stood in is spared its lock: who stands there first says so in the word by an exchange, which
//!    comes either before that of the event or after it.

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_io::driver::Interest;

/// Reading, or accepting, may succeed.
const READ: usize = 1;
/// Writing may succeed, or a connection has been made or refused.
const WRITE: usize = 2;
/// A read that fell short does not mean that there is nothing left: the peer has hung up, the end or an error is still to be
/// read, or there is urgent data in between.
const MORE: usize = 4;
/// The driver has shut down: nothing is ready any more, and nothing will be.
const SHUT: usize = 8;
/// Somebody has stood in the line of those who try again by themselves: rule 3.
const WATCHED: usize = 16;
/// Somebody has stood in the line of operations.
const PARKED: usize = 32;
/// The kernel was asked for events.
const ADDED: usize = 64;
/// The rest counts events. It is compared with what an attempt saw before it began: that must not be the same again after so
/// many events that the count is back where it was. With 57 bits it never is; a machine of 32 bits has 2^25 events, in the time of
/// one system call.
const TICK: usize = 128;

/// Above the bits.
const TICKS: usize = !(TICK - 1);

/// The readiness of one source.
#[derive(Debug)]
pub struct Readiness {
    word: AtomicUsize,
}

/// Where those stand who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Line {
    /// Those who are woken, and try again by themselves.
    Watchers = WATCHED,
    /// Operations, which the driver performs.
    Operations = PARKED,
}

/// The lines in which somebody may stand. Whoever is given this takes their locks and serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "who waits is served"]
pub struct Lines(usize);

impl Lines {
    /// Whether this is one of them.
    #[inline]
    pub fn has(self, line: Line) -> bool {
        self.0 & line as usize != 0
    }
}

/// What an event of the kernel says: the bits that it puts into the word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event(usize);

impl Event {
    /// Reading may succeed.
    pub const READABLE: Self = Self(READ);
    /// Writing may succeed.
    pub const WRITABLE: Self = Self(WRITE);
    /// More is to come after a read that falls short: an end, an error.
    pub const MORE: Self = Self(MORE);

    /// This one, and the other too if it is the case.
    #[inline]
    #[must_use = "an event is a value"]
    pub const fn and_if(self, is_case: bool, other: Self) -> Self {
        if is_case { Self(self.0 | other.0) } else { self }
    }

    /// Whether it says this.
    #[inline]
    pub const fn says(self, one: Self) -> bool {
        self.0 & one.0 != 0
    }
}

/// A look that found a source ready: the word as it was. An attempt that fails clears only what this has seen.
#[derive(Clone, Copy, Debug)]
#[must_use = "an attempt that follows may have to be reported"]
pub struct Look(usize);

/// A look that did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// An event will come.
    NotReady,
    /// The driver has shut down.
    Shut,
}

impl Readiness {
    /// Of a new source: nothing is known, so an attempt may succeed.
    pub fn new() -> Self {
        Self { word: AtomicUsize::new(READ | WRITE) }
    }

    /// Whether an attempt may succeed.
    #[inline]
    pub fn look(&self, interest: Interest) -> Result<Look, Blocked> {
        let word = self.word.load(Ordering::Acquire);
        if word & (bit(interest) | SHUT) == bit(interest) {
            return Ok(Look(word));
        }
        Err(if word & SHUT == 0 { Blocked::NotReady } else { Blocked::Shut })
    }

    /// Whether an attempt would block, for certain.
    #[inline]
    pub fn is_known_to_block(&self, interest: Interest) -> bool {
        self.word.load(Ordering::Relaxed) & (bit(interest) | SHUT) == 0
    }

    /// An attempt would have blocked.
    #[inline]
    pub fn would_block(&self, interest: Interest, look: Look) {
        self.clear(bit(interest), look);
    }

    /// An attempt has transferred less than it could have: what there was, or what there was room for.
    #[inline]
    pub fn fell_short(&self, interest: Interest, look: Look) {
        if look.0 & MORE == 0 {
            self.clear(bit(interest), look);
        }
    }

    /// Rule 1.
    #[inline]
    fn clear(&self, bit: usize, look: Look) {
        let mut word = look.0;
        // Relaxed if it fails: who waits afterwards looks again with the lock held.
        while let Err(now) =
            self.word.compare_exchange_weak(word, word & !bit, Ordering::AcqRel, Ordering::Relaxed)
        {
            if now & TICKS != look.0 & TICKS {
                return;
            }
            word = now;
        }
    }

    /// Before the kernel is asked for events for the first time: nothing is ready until it says so.
    pub fn reset(&self) {
        self.word.fetch_and(!(READ | WRITE), Ordering::AcqRel);
    }

    /// The kernel says so.
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

    /// The kernel was asked for events.
    pub fn set_added(&self) {
        self.word.fetch_or(ADDED, Ordering::AcqRel);
    }

    /// Whether the kernel was asked for events.
    pub fn is_added(&self) -> bool {
        self.word.load(Ordering::Acquire) & ADDED != 0
    }

    /// The driver shuts down. Whoever calls this takes the locks of all lines afterwards, and finishes all who wait.
    pub fn shut(&self) {
        self.word.fetch_or(SHUT, Ordering::AcqRel);
    }

    /// Whether the driver has shut down.
    pub fn is_shut(&self) -> bool {
        self.word.load(Ordering::Acquire) & SHUT != 0
    }

    /// Whether one may stand in this line now, whose lock he has, and wait for an event: else the source is ready, or shut,
    /// and he looks again.
    #[inline]
    #[must_use = "who may not wait looks again"]
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
    fn an_event_counts_when_the_count_begins_again() {
        let readiness = Readiness::new();
        readiness.word.fetch_or(TICKS, Ordering::Relaxed);
        let look = readiness.look(Interest::Read).expect("a new source is ready");
        assert!(!readiness.happened(Event::READABLE).has(Line::Operations));
        assert_eq!(readiness.word.load(Ordering::Relaxed) & TICKS, 0, "it has begun again");
        readiness.would_block(Interest::Read, look);
        assert!(readiness.look(Interest::Read).is_ok(), "an event came since the look");
        let bits = readiness.word.load(Ordering::Relaxed) & !TICKS;
        assert_eq!(bits, READ | WRITE, "the count does not reach the bits");
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn an_attempt_that_took_as_long_as_thousands_of_millions_of_events_clears_nothing() {
        for events in [1_usize << 25, 1 << 26, 1 << 32, 1 << 56] {
            let readiness = Readiness::new();
            let look = readiness.look(Interest::Read).expect("a new source is ready");
            // As if so many had come.
            readiness.word.fetch_add(events * TICK, Ordering::Relaxed);
            readiness.would_block(Interest::Read, look);
            assert!(readiness.look(Interest::Read).is_ok(), "{events} events came since the look");
        }
    }
}
