//! The poller of the crate `polling`: kqueue, IOCP, event ports. Edge-triggered where the system supports it;
//! otherwise each event is requested.

#![allow(unsafe_code)]

use core::num::NonZeroUsize;
use std::io;
#[cfg(all(unix, not(any(target_os = "fuchsia", target_os = "vxworks", target_os = "hermit"))))]
use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::time::Duration;

use convoke_core::raw::sync::Mutex;
use polling::PollMode;

use super::EVENTS_AT_ONCE;
use super::Handle;
use crate::readiness::Event;

#[derive(Debug)]
pub(crate) struct Poller {
    poller: polling::Poller,
    has_edges: bool,
    /// The events of one wait. The memory is reused.
    events: Mutex<polling::Events>,
}

impl Poller {
    /// Creates a poller, edge-triggered if that is supported. It does not poll before a sleep.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn new(_longest_spin: Duration) -> io::Result<Self> {
        Self::portable(true)
    }

    /// Creates a poller, edge-triggered if that is wanted and supported.
    pub(crate) fn portable(wants_edges: bool) -> io::Result<Self> {
        let poller = polling::Poller::new()?;
        let has_edges = wants_edges && poller.supports_edge();
        let capacity = NonZeroUsize::new(EVENTS_AT_ONCE).expect("EVENTS_AT_ONCE is not zero");
        Ok(Self { poller, has_edges, events: Mutex::new(polling::Events::with_capacity(capacity)) })
    }

    #[inline]
    pub(crate) fn has_edges(&self) -> bool {
        self.has_edges
    }

    pub(crate) fn add(&self, socket: Handle<'_>, key: usize) -> io::Result<()> {
        let (interest, mode) = if self.has_edges {
            (polling::Event::all(key), PollMode::Edge)
        } else {
            (polling::Event::none(key), PollMode::Oneshot)
        };
        // SAFETY: `add_with_mode` requires that the socket is deleted before it is closed. `PollSource` owns
        // the socket, never gives it away, and its `drop` calls `delete` first (`SourceState::remove`).
        unsafe { self.poller.add_with_mode(&socket, interest, mode) }
    }

    pub(crate) fn arm(&self, socket: Handle<'_>, key: usize, read: bool, write: bool) -> io::Result<()> {
        let interest = polling::Event::new(key, read, write);
        self.poller.modify_with_mode(socket, interest, PollMode::Oneshot)
    }

    pub(crate) fn delete(&self, socket: Handle<'_>) {
        _ = self.poller.delete(socket);
    }

    pub(crate) fn wait(
        &self,
        timeout: Option<Duration>,
        mut each: impl FnMut(usize, Event),
    ) -> io::Result<()> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.clear();
        self.poller.wait(&mut events, timeout)?;
        for event in events.iter() {
            // Not every system reports a hang-up as an event of its own, so a short read never counts as the
            // last one.
            let reported =
                Event::MORE.and_if(event.readable, Event::READABLE).and_if(event.writable, Event::WRITABLE);
            each(event.key, reported);
        }
        Ok(())
    }

    pub(crate) fn wake(&self) {
        self.poller.notify().expect("the kernel can wake a poller");
    }

    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> Option<Handle<'_>> {
        #[cfg(not(any(target_os = "fuchsia", target_os = "vxworks", target_os = "hermit")))]
        return Some(self.poller.as_fd());
        #[cfg(any(target_os = "fuchsia", target_os = "vxworks", target_os = "hermit"))]
        None
    }
}
