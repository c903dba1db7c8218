//! `PollSlot`: the state of a wait for traits with `poll_…` methods, which have no future to store it in. It
//! is allocated on first use: most sockets are only used by futures, and there are many sockets.

use core::fmt;
use core::panic::Location;
use core::task::{Context, Poll};
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::PoisonError;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{DropOutOfLine, LastUse, OutOfLine};

use convoke_io::attempting::Waiting;
use convoke_io::driver::{Interest, Source};

/// The state of one wait. It is always accessed through `&mut`; the mutex only makes it `Sync` and is never
/// locked.
#[derive(Default)]
pub(super) struct PollSlot(Option<Box<Mutex<Waiting>>>);

impl PollSlot {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    #[inline]
    pub(super) fn poll<T>(
        &mut self,
        source: &dyn Source,
        interest: Interest,
        location: &'static Location<'static>,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let waiting = self.0.get_or_insert_with(|| Box::new(Mutex::new(Waiting::new(interest))));
        waiting.get_mut().unwrap_or_else(PoisonError::into_inner).poll(source, location, cx, act)
    }

    #[inline]
    pub(super) fn poll_read(
        &mut self,
        source: &dyn Source,
        cx: &Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if buffer.is_empty() {
            return self.complete_empty(source);
        }
        self.poll(source, Interest::Read, poll_location(), cx, |source| source.try_read(buffer))
    }

    pub(super) fn poll_read_vectored(
        &mut self,
        source: &dyn Source,
        cx: &Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return self.complete_empty(source);
        }
        self.poll(source, Interest::Read, poll_location(), cx, |source| source.try_read_vectored(buffers))
    }

    #[inline]
    pub(super) fn poll_write(
        &mut self,
        source: &dyn Source,
        cx: &Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buffer.is_empty() {
            return self.complete_empty(source);
        }
        self.poll(source, Interest::Write, poll_location(), cx, |source| source.try_write(buffer))
    }

    pub(super) fn poll_write_vectored(
        &mut self,
        source: &dyn Source,
        cx: &Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return self.complete_empty(source);
        }
        self.poll(source, Interest::Write, poll_location(), cx, |source| source.try_write_vectored(buffers))
    }

    /// Completes a call with empty buffers, which tells nothing about the source, and ends the wait of an
    /// earlier call.
    fn complete_empty(&mut self, source: &dyn Source) -> Poll<io::Result<usize>> {
        self.release(source);
        Poll::Ready(Ok(0))
    }

    /// Ends the wait. Called before the owner of the slot is dropped.
    #[inline]
    pub(super) fn release(&mut self, source: &dyn Source) {
        if let Some(waiting) = &mut self.0 {
            waiting.get_mut().unwrap_or_else(PoisonError::into_inner).release(source);
        }
    }
}

/// The slots for both directions of a stream.
#[derive(Debug)]
pub(super) struct PollSlots(OutOfLine<AnySlots>);

/// The slots, if there are any.
#[derive(Debug)]
struct AnySlots(Option<Box<Slots>>);

#[derive(Debug, Default)]
struct Slots {
    reads: PollSlot,
    writes: PollSlot,
}

impl PollSlots {
    pub(super) const fn new() -> Self {
        Self(OutOfLine::new(AnySlots(None)))
    }

    #[inline]
    pub(super) fn reads(&mut self) -> &mut PollSlot {
        &mut self.0.0.get_or_insert_default().reads
    }

    #[inline]
    pub(super) fn writes(&mut self) -> &mut PollSlot {
        &mut self.0.0.get_or_insert_default().writes
    }

    /// Ends both waits. Called before the stream is dropped.
    #[inline]
    pub(super) fn release(&mut self, source: &dyn Source) {
        if let Some(slots) = &mut self.0.0 {
            slots.reads.release(source);
            slots.writes.release(source);
        }
    }
}

impl DropOutOfLine for AnySlots {
    #[inline(never)]
    fn drop_out_of_line(slots: LastUse<'_, Self>) {
        slots.drop_here();
    }

    #[inline]
    fn has_something_to_drop(&mut self) -> bool {
        self.0.is_some()
    }
}

/// The slots of a socket whose `poll_…` methods take `&self`. The last caller in a direction has its slot.
#[derive(Debug, Default)]
pub(super) struct SharedPollSlots {
    reads: Mutex<PollSlot>,
    writes: Mutex<PollSlot>,
}

impl SharedPollSlots {
    fn of(&self, interest: Interest) -> MutexGuard<'_, PollSlot> {
        let slot = match interest {
            Interest::Read => &self.reads,
            Interest::Write => &self.writes,
        };
        slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls with the slot of this direction. It is taken out meanwhile: a waker may be foreign code, and
    /// runs without the lock. Of two callers at once the second one's slot stays.
    pub(super) fn poll<T>(
        &self,
        source: &dyn Source,
        interest: Interest,
        location: &'static Location<'static>,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let mut slot = core::mem::take(&mut *self.of(interest));
        let polled = slot.poll(source, interest, location, cx, act);
        let mut other = core::mem::replace(&mut *self.of(interest), slot);
        other.release(source);
        polled
    }

    /// Ends both waits. Called before the socket is dropped.
    pub(super) fn release(&mut self, source: &dyn Source) {
        for interest in [Interest::Read, Interest::Write] {
            let mut slot = core::mem::take(&mut *self.of(interest));
            slot.release(source);
        }
    }
}

/// Returns the location where a `poll_…` method waits: its caller is not known.
pub(super) fn poll_location() -> &'static Location<'static> {
    Location::caller()
}

impl fmt::Debug for PollSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PollSlot")
    }
}
