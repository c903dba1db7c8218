//! What waits for a source on behalf of traits with `poll_…` methods, which have no future of their own to keep it in.

use core::fmt;
use core::panic::Location;
use core::task::{Context, Poll};
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::attempting::Waiting;
use crate::driver::{Interest, Source};

/// Used by who has it to himself; the lock is there so that it may be shared meanwhile, and never taken.
pub(super) struct PollSlot(Mutex<Waiting>);

impl PollSlot {
    pub(super) const fn new(interest: Interest) -> Self {
        Self(Mutex::new(Waiting::new(interest)))
    }

    #[inline]
    pub(super) fn poll<T>(
        &mut self,
        source: &dyn Source,
        place: &'static Location<'static>,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.waiting().poll(source, place, cx, act)
    }

    /// It waits no longer: before whoever has it goes.
    pub(super) fn let_go(&mut self, source: &dyn Source) {
        self.waiting().let_go(source);
    }

    fn waiting(&mut self) -> &mut Waiting {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PollSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PollSlot")
    }
}
