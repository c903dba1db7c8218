//! epoll, by edges: one system call for a wait, none to wait again for the same socket.

use core::mem::MaybeUninit;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::EVENTS_AT_ONCE;
use crate::readiness::Event;

/// The key of the bell.
const BELL: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    /// Is rung to wake. By edges too, so nobody needs to read it.
    bell: OwnedFd,
    /// Whether the bell was rung, and the wait that it ends has not ended yet.
    rung: AtomicBool,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, bell, rung: AtomicBool::new(false) })
    }

    pub(crate) fn add(&self, socket: BorrowedFd<'_>, key: usize) -> io::Result<()> {
        let all = EventFlags::IN | EventFlags::PRI | EventFlags::RDHUP | EventFlags::OUT | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(key as u64), all)?)
    }

    pub(crate) fn delete(&self, socket: BorrowedFd<'_>) {
        _ = epoll::delete(&self.epoll, socket);
    }

    #[inline]
    pub(crate) fn wait(
        &self,
        timeout: Option<Duration>,
        mut each: impl FnMut(usize, Event),
    ) -> io::Result<()> {
        let timeout = timeout.and_then(whole_milliseconds);
        let mut room = [const { MaybeUninit::uninit() }; EVENTS_AT_ONCE];
        let events = match epoll::wait(&self.epoll, &mut room, timeout.as_ref()) {
            Ok((events, _)) => &*events,
            // A signal: a wait may end for no reason.
            Err(Errno::INTR) => &[],
            Err(error) => return Err(error.into()),
        };
        // Only what was rung before is answered by this: whoever rings from now on rings for the next wait. Looked at
        // before it is exchanged: mostly nobody has rung.
        if self.rung.load(Ordering::Relaxed) {
            self.rung.swap(false, Ordering::AcqRel);
        }
        for event in events {
            let (flags, key) = (event.flags, event.data.u64());
            if key != BELL {
                each(key as usize, of_flags(flags));
            }
        }
        Ok(())
    }

    pub(crate) fn wake(&self) {
        if self.rung.swap(true, Ordering::AcqRel) {
            return;
        }
        // It fails when it is full, after more rings than there are nanoseconds in a century.
        _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[inline]
fn of_flags(flags: EventFlags) -> Event {
    const MORE: EventFlags =
        EventFlags::PRI.union(EventFlags::RDHUP).union(EventFlags::HUP).union(EventFlags::ERR);
    const READ: EventFlags = MORE.union(EventFlags::IN);
    const WRITE: EventFlags = EventFlags::OUT.union(EventFlags::HUP).union(EventFlags::ERR);
    let flags = flags.bits();
    Event {
        readable: flags & READ.bits() != 0,
        writable: flags & WRITE.bits() != 0,
        more: flags & MORE.bits() != 0,
    }
}

/// Rounded up: a wait that ends too early would have to be begun again. `None` if there are too many.
fn whole_milliseconds(timeout: Duration) -> Option<Timespec> {
    let milliseconds = timeout.as_nanos().div_ceil(1_000_000);
    i32::try_from(milliseconds).ok()?;
    Timespec::try_from(Duration::from_millis(milliseconds as u64)).ok()
}
