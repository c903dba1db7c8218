//! What waits for a source on behalf of traits with `poll_…` methods, which have no future of their own to keep it in. Made when
//! it is first needed: most sockets are used by futures, and there are many sockets.

use core::fmt;
use core::panic::Location;
use core::task::{Context, Poll};
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::PoisonError;

use convoke_core::raw::sync::Mutex;

use convoke_io::attempting::Waiting;
use convoke_io::driver::{Interest, Source};

/// Used by who has it to himself; the lock is there so that it may be shared meanwhile, and never taken.
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
        place: &'static Location<'static>,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let waiting = self.0.get_or_insert_with(|| Box::new(Mutex::new(Waiting::new(interest))));
        waiting.get_mut().unwrap_or_else(PoisonError::into_inner).poll(source, place, cx, act)
    }

    #[inline]
    pub(super) fn poll_read(
        &mut self,
        source: &dyn Source,
        cx: &Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if buffer.is_empty() {
            return self.nothing(source);
        }
        self.poll(source, Interest::Read, polled(), cx, |source| source.try_read(buffer))
    }

    pub(super) fn poll_read_vectored(
        &mut self,
        source: &dyn Source,
        cx: &Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return self.nothing(source);
        }
        self.poll(source, Interest::Read, polled(), cx, |source| source.try_read_vectored(buffers))
    }

    #[inline]
    pub(super) fn poll_write(
        &mut self,
        source: &dyn Source,
        cx: &Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buffer.is_empty() {
            return self.nothing(source);
        }
        self.poll(source, Interest::Write, polled(), cx, |source| source.try_write(buffer))
    }

    pub(super) fn poll_write_vectored(
        &mut self,
        source: &dyn Source,
        cx: &Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return self.nothing(source);
        }
        self.poll(source, Interest::Write, polled(), cx, |source| source.try_write_vectored(buffers))
    }

    /// Nothing was asked for, which says nothing about the source: who waited does not any more.
    fn nothing(&mut self, source: &dyn Source) -> Poll<io::Result<usize>> {
        self.release(source);
        Poll::Ready(Ok(0))
    }

    /// It waits no longer: before whoever has it goes.
    #[inline]
    pub(super) fn release(&mut self, source: &dyn Source) {
        if let Some(waiting) = &mut self.0 {
            waiting.get_mut().unwrap_or_else(PoisonError::into_inner).release(source);
        }
    }
}

/// The two of a stream.
#[derive(Debug)]
pub(super) struct PollSlots(Option<Box<Slots>>);

#[derive(Debug, Default)]
struct Slots {
    reads: PollSlot,
    writes: PollSlot,
}

impl PollSlots {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    #[inline]
    pub(super) fn reads(&mut self) -> &mut PollSlot {
        &mut self.0.get_or_insert_default().reads
    }

    #[inline]
    pub(super) fn writes(&mut self) -> &mut PollSlot {
        &mut self.0.get_or_insert_default().writes
    }

    /// As [`PollSlot::release`].
    #[inline]
    pub(super) fn release(&mut self, source: &dyn Source) {
        if let Some(slots) = &mut self.0 {
            slots.reads.release(source);
            slots.writes.release(source);
        }
    }
}

/// Where a `poll_…` method of a trait waits: who calls it is not known.
pub(super) fn polled() -> &'static Location<'static> {
    Location::caller()
}

impl fmt::Debug for PollSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PollSlot")
    }
}
