//! epoll, edge-triggered: one system call for each wait, and none to wait for the same socket again.

use core::hint;
use core::mem::MaybeUninit;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use super::adaptive_spin::AdaptiveSpin;
use crate::EVENTS_AT_ONCE;
use crate::readiness::Event;
use crate::wake_flag::WakeFlag;

/// The key of the eventfd that ends a wait.
const WAKE_KEY: u64 = u64::MAX;

/// The pause between two polls, in spin-loop hints: about as long as a poll.
const PAUSES: u32 = 8;

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    wake_flag: WakeFlag,
    /// The eventfd that ends a wait. It is edge-triggered too, so it need not be read.
    wake_fd: OwnedFd,
    adaptive_spin: AdaptiveSpin,
}

impl Poller {
    pub(crate) fn new(longest_spin: Duration) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake_fd, EventData::new_u64(WAKE_KEY), EventFlags::IN | EventFlags::ET)?;
        Ok(Self {
            epoll,
            wake_flag: WakeFlag::new(),
            wake_fd,
            adaptive_spin: AdaptiveSpin::new(longest_spin),
        })
    }

    pub(crate) fn add(&self, socket: BorrowedFd<'_>, key: usize) -> io::Result<()> {
        let all = EventFlags::IN | EventFlags::PRI | EventFlags::RDHUP | EventFlags::OUT | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(key as u64), all)?)
    }

    pub(crate) fn delete(&self, socket: BorrowedFd<'_>) {
        _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits for events. Polls first if recent sleeps were short.
    #[inline]
    pub(crate) fn wait(
        &self,
        mut timeout: Option<Duration>,
        mut each: impl FnMut(usize, Event),
    ) -> io::Result<()> {
        let longest = self.adaptive_spin.longest();
        if longest.is_zero() || timeout == Some(Duration::ZERO) {
            return self.take_events(timeout, &mut each).map(drop);
        }
        if self.adaptive_spin.should_spin() {
            if self.take_events(Some(Duration::ZERO), &mut each)? > 0 || self.spin(timeout, &mut each)? {
                return Ok(());
            }
            timeout = timeout.map(|timeout| timeout.saturating_sub(longest));
        }
        let begun = Instant::now();
        self.take_events(timeout, &mut each)?;
        self.adaptive_spin.slept(begun.elapsed());
        Ok(())
    }

    /// Polls until there is an event, or the limit of polling is reached. Returns true if there was one.
    #[inline(never)]
    fn spin(&self, timeout: Option<Duration>, each: &mut impl FnMut(usize, Event)) -> io::Result<bool> {
        let longest = self.adaptive_spin.longest();
        let longest = timeout.map_or(longest, |timeout| timeout.min(longest));
        let begun = Instant::now();
        while begun.elapsed() < longest {
            (0..PAUSES).for_each(|_| hint::spin_loop());
            if self.take_events(Some(Duration::ZERO), each)? > 0 {
                self.adaptive_spin.succeeded();
                return Ok(true);
            }
        }
        self.adaptive_spin.failed();
        Ok(false)
    }

    /// Takes the events that are pending, or waits for the first. Returns their number, the eventfd's
    /// included.
    #[inline]
    fn take_events(
        &self,
        timeout: Option<Duration>,
        each: &mut impl FnMut(usize, Event),
    ) -> io::Result<usize> {
        let timeout = timeout.map(whole_milliseconds);
        let mut buffer = [const { MaybeUninit::uninit() }; EVENTS_AT_ONCE];
        let events = match epoll::wait(&self.epoll, &mut buffer, timeout.as_ref()) {
            Ok((events, _)) => &*events,
            // A signal: a wait may end for no reason.
            Err(Errno::INTR) => &[],
            Err(error) => return Err(error.into()),
        };
        // Cleared before anything is checked: rule 2 of `WakeFlag`.
        self.wake_flag.clear();
        for event in events {
            let (flags, key) = (event.flags, event.data.u64());
            if key != WAKE_KEY {
                each(key as usize, event_of(flags));
            }
        }
        Ok(events.len())
    }

    pub(crate) fn wake(&self) {
        if self.wake_flag.set() {
            // It fails only if the counter is full, after 2^64 - 2 wake-ups.
            _ = rustix::io::write(&self.wake_fd, &1_u64.to_ne_bytes());
        }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[inline]
fn event_of(flags: EventFlags) -> Event {
    // The fast path: nearly all events have only these flags.
    if !has(flags, EventFlags::all().difference(EventFlags::IN.union(EventFlags::OUT))) {
        return Event::default()
            .and_if(has(flags, EventFlags::IN), Event::READABLE)
            .and_if(has(flags, EventFlags::OUT), Event::WRITABLE);
    }
    event_of_all_flags(flags)
}

#[cold]
fn event_of_all_flags(flags: EventFlags) -> Event {
    const MORE: EventFlags =
        EventFlags::PRI.union(EventFlags::RDHUP).union(EventFlags::HUP).union(EventFlags::ERR);
    const READ: EventFlags = MORE.union(EventFlags::IN);
    const WRITE: EventFlags = EventFlags::OUT.union(EventFlags::HUP).union(EventFlags::ERR);
    Event::default()
        .and_if(has(flags, READ), Event::READABLE)
        .and_if(has(flags, WRITE), Event::WRITABLE)
        .and_if(has(flags, MORE), Event::MORE)
}

#[inline]
fn has(flags: EventFlags, some: EventFlags) -> bool {
    flags.bits() & some.bits() != 0
}

/// The longest timeout of the kernel in milliseconds: 24 days.
const LONGEST: u128 = i32::MAX as u128;

/// Rounds a timeout up to milliseconds, so that a wait is not too short. One that exceeds [`LONGEST`] is cut:
/// the wait ends early and is repeated.
///
/// Linux 5.11 has timeouts in nanoseconds (`epoll_pwait2`). rustix calls that always or never, by a feature
/// that holds for the whole program, so older kernels would not work at all. Waiting with `ppoll` or a
/// timerfd costs a second system call. The gain would be small, too: timers of the same millisecond share a
/// wake-up.
fn whole_milliseconds(timeout: Duration) -> Timespec {
    let milliseconds = timeout.as_nanos().div_ceil(1_000_000).min(LONGEST);
    Timespec::try_from(Duration::from_millis(milliseconds as u64)).expect("24 days fit into a timespec")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    /// Creates a poller that polls for longer than any test takes before it sleeps.
    fn spinning_poller() -> Poller {
        let poller = Poller::new(Duration::from_secs(600)).unwrap();
        while !poller.adaptive_spin.should_spin() {
            poller.adaptive_spin.slept(Duration::ZERO);
        }
        poller
    }

    #[test]
    fn a_polling_wait_is_woken_from_another_thread() {
        let poller = spinning_poller();
        thread::scope(|threads| {
            threads.spawn(|| poller.wake());
            poller.wait(None, |_, _| panic!("nothing has happened to any socket")).unwrap();
        });
        assert!(poller.adaptive_spin.should_spin(), "it has not slept");
    }

    #[test]
    fn a_polling_wait_sees_an_event() {
        let poller = spinning_poller();
        let (one, mut other) = UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        poller.add(one.as_fd(), 7).unwrap();
        // It is writable at once.
        poller
            .wait(None, |key, event| {
                assert!(key == 7 && event.says(Event::WRITABLE) && !event.says(Event::READABLE))
            })
            .unwrap();
        let mut readable = false;
        thread::scope(|threads| {
            threads.spawn(|| io::Write::write_all(&mut other, b"!").unwrap());
            poller.wait(None, |key, event| readable = key == 7 && event.says(Event::READABLE)).unwrap();
        });
        assert!(readable);
    }

    #[test]
    fn a_wait_is_never_shorter_than_requested() {
        let asked = [0, 1, 999_999, 1_000_000, 1_000_001, 5_200_000].map(Duration::from_nanos);
        let waits = asked.map(|timeout| Duration::try_from(whole_milliseconds(timeout)).unwrap());
        assert_eq!(waits, [0, 1, 1, 1, 2, 6].map(Duration::from_millis));
        let days = Duration::try_from(whole_milliseconds(Duration::MAX)).unwrap().as_secs() / 86_400;
        assert_eq!(days, 24, "a longer wait is cut");
    }

    #[test]
    fn a_poll_without_success_ends_with_its_timeout() {
        let poller = spinning_poller();
        poller.wait(Some(Duration::from_millis(1)), |_, _| panic!("there are no sockets")).unwrap();
        assert!(!poller.adaptive_spin.should_spin());
    }
}
