//! epoll, edge-triggered: one system call for each wait, and none to wait for the same socket again.

use core::hint;
use core::mem::MaybeUninit;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use libc::{EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLPRI, EPOLLRDHUP};

use super::EVENTS_AT_ONCE;
use super::adaptive_spin::AdaptiveSpin;
use crate::readiness::Event;
use crate::system_calls::{epoll_add, epoll_create, epoll_delete, epoll_wait, event_counter, increment};
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
    wake_fd: File,
    adaptive_spin: AdaptiveSpin,
}

impl Poller {
    /// Creates a poller. `longest_spin` limits the polling before a sleep.
    pub(crate) fn new(longest_spin: Duration) -> io::Result<Self> {
        let epoll = epoll_create()?;
        let wake_fd = event_counter()?;
        epoll_add(epoll.as_fd(), wake_fd.as_fd(), EPOLLIN | EPOLLET, WAKE_KEY)?;
        Ok(Self {
            epoll,
            wake_flag: WakeFlag::new(),
            wake_fd,
            adaptive_spin: AdaptiveSpin::new(longest_spin),
        })
    }

    /// Returns true if events are edge-triggered. Otherwise each one is requested with [`arm`](Self::arm).
    #[inline]
    pub(crate) fn has_edges(&self) -> bool {
        true
    }

    /// Registers a socket. It must stay open until `delete`.
    pub(crate) fn add(&self, socket: BorrowedFd<'_>, key: usize) -> io::Result<()> {
        let all = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLOUT | EPOLLET;
        epoll_add(self.epoll.as_fd(), socket, all, key as u64)
    }

    /// Requests one event for these directions. Edge-triggered events need no request.
    #[inline]
    pub(crate) fn arm(&self, _: BorrowedFd<'_>, _: usize, _read: bool, _write: bool) -> io::Result<()> {
        Ok(())
    }

    /// Removes a socket. A socket that is not registered is not an error.
    pub(crate) fn delete(&self, socket: BorrowedFd<'_>) {
        _ = epoll_delete(self.epoll.as_fd(), socket);
    }

    /// Waits for events until the timeout, or until it is woken. Calls `each` with the key and the event.
    /// Polls first if recent sleeps were short.
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
        let timeout = timeout.map_or(WITHOUT_END, whole_milliseconds);
        let mut buffer = [const { MaybeUninit::uninit() }; EVENTS_AT_ONCE];
        let events = match epoll_wait(self.epoll.as_fd(), &mut buffer, timeout) {
            Ok(events) => events,
            // A signal: a wait may end for no reason.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => &[],
            Err(error) => return Err(error),
        };
        // Cleared before anything is checked: rule 2 of `WakeFlag`.
        self.wake_flag.clear();
        for event in events {
            let (flags, key) = (event.events, event.u64);
            if key != WAKE_KEY {
                each(key as usize, event_of(flags as i32));
            }
        }
        Ok(events.len())
    }

    /// Ends the current wait or, if there is none, the next one.
    pub(crate) fn wake(&self) {
        if self.wake_flag.set() {
            // It fails only if the counter is full, after 2^64 - 2 wake-ups.
            _ = increment(&self.wake_fd);
        }
    }

    /// Returns a descriptor that is readable when there are events.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }
}

#[inline]
fn event_of(flags: i32) -> Event {
    // The fast path: nearly all events have only these flags.
    if !has(flags, !(EPOLLIN | EPOLLOUT)) {
        return Event::default()
            .and_if(has(flags, EPOLLIN), Event::READABLE)
            .and_if(has(flags, EPOLLOUT), Event::WRITABLE);
    }
    event_of_all_flags(flags)
}

#[cold]
fn event_of_all_flags(flags: i32) -> Event {
    const MORE: i32 = EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
    const READ: i32 = MORE | EPOLLIN;
    const WRITE: i32 = EPOLLOUT | EPOLLHUP | EPOLLERR;
    Event::default()
        .and_if(has(flags, READ), Event::READABLE)
        .and_if(has(flags, WRITE), Event::WRITABLE)
        .and_if(has(flags, MORE), Event::MORE)
}

#[inline]
fn has(flags: i32, some: i32) -> bool {
    flags & some != 0
}

/// The timeout of a wait that only an event ends.
const WITHOUT_END: i32 = -1;

/// The longest timeout of the kernel in milliseconds: 24 days.
const LONGEST: u128 = i32::MAX as u128;

/// Rounds a timeout up to milliseconds, so that a wait is not too short. One that exceeds [`LONGEST`] is cut:
/// the wait ends early and is repeated.
///
/// Linux 5.11 has timeouts in nanoseconds (`epoll_pwait2`). Older kernels do not, so there would be two ways
/// to wait. Waiting with `ppoll` or a timerfd costs a second system call. The gain would be small, too: timers
/// of the same millisecond share a wake-up.
fn whole_milliseconds(timeout: Duration) -> i32 {
    // Most often: the loop only checks.
    if timeout.is_zero() {
        return 0;
    }
    timeout.as_nanos().div_ceil(1_000_000).min(LONGEST) as i32
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
        assert_eq!(asked.map(whole_milliseconds), [0, 1, 1, 1, 2, 6]);
        assert_eq!(whole_milliseconds(Duration::MAX), i32::MAX, "a longer wait is cut");
    }

    #[test]
    fn a_poll_without_success_ends_with_its_timeout() {
        let poller = spinning_poller();
        poller.wait(Some(Duration::from_millis(1)), |_, _| panic!("there are no sockets")).unwrap();
        assert!(!poller.adaptive_spin.should_spin());
    }
}
