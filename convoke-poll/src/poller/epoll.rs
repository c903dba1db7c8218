//! epoll, by edges: one system call for a wait, none to wait again for the same socket.

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
use crate::bell::Bell;
use crate::readiness::Event;

/// The key of the bell.
const BELL: u64 = u64::MAX;

/// So long is the breath between two looks, in pauses of the processor: about as long as a look.
const PAUSES: u32 = 8;

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    bell: Bell,
    /// By which the kernel says that the bell was rung. By edges too, so nobody needs to read it.
    sound: OwnedFd,
    alertness: AdaptiveSpin,
}

impl Poller {
    pub(crate) fn new(longest_look: Duration) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let sound = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &sound, EventData::new_u64(BELL), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, bell: Bell::new(), sound, alertness: AdaptiveSpin::new(longest_look) })
    }

    pub(crate) fn add(&self, socket: BorrowedFd<'_>, key: usize) -> io::Result<()> {
        let all = EventFlags::IN | EventFlags::PRI | EventFlags::RDHUP | EventFlags::OUT | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(key as u64), all)?)
    }

    pub(crate) fn delete(&self, socket: BorrowedFd<'_>) {
        _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits; where sleeps have been short of late, by looking for a while first.
    #[inline]
    pub(crate) fn wait(
        &self,
        mut timeout: Option<Duration>,
        mut each: impl FnMut(usize, Event),
    ) -> io::Result<()> {
        let longest = self.alertness.longest();
        if longest.is_zero() || timeout == Some(Duration::ZERO) {
            return self.take(timeout, &mut each).map(drop);
        }
        if self.alertness.is_alert() {
            if self.take(Some(Duration::ZERO), &mut each)? > 0 || self.look_again(timeout, &mut each)? {
                return Ok(());
            }
            timeout = timeout.map(|timeout| timeout.saturating_sub(longest));
        }
        let begun = Instant::now();
        self.take(timeout, &mut each)?;
        self.alertness.slept(begun.elapsed());
        Ok(())
    }

    /// Looks until there is something, for as long as that may be worth it. Says whether there was.
    #[inline(never)]
    fn look_again(&self, timeout: Option<Duration>, each: &mut impl FnMut(usize, Event)) -> io::Result<bool> {
        let longest = self.alertness.longest();
        let longest = timeout.map_or(longest, |timeout| timeout.min(longest));
        let begun = Instant::now();
        while begun.elapsed() < longest {
            (0..PAUSES).for_each(|_| hint::spin_loop());
            if self.take(Some(Duration::ZERO), each)? > 0 {
                self.alertness.found();
                return Ok(true);
            }
        }
        self.alertness.missed();
        Ok(false)
    }

    /// Takes the events that are there, or the first to come. Says how many there were, the bell's among them.
    #[inline]
    fn take(&self, timeout: Option<Duration>, each: &mut impl FnMut(usize, Event)) -> io::Result<usize> {
        let timeout = timeout.map(whole_milliseconds);
        let mut room = [const { MaybeUninit::uninit() }; EVENTS_AT_ONCE];
        let events = match epoll::wait(&self.epoll, &mut room, timeout.as_ref()) {
            Ok((events, _)) => &*events,
            // A signal: a wait may end for no reason.
            Err(Errno::INTR) => &[],
            Err(error) => return Err(error.into()),
        };
        // Before anything else is looked at.
        self.bell.answer();
        for event in events {
            let (flags, key) = (event.flags, event.data.u64());
            if key != BELL {
                each(key as usize, of_flags(flags));
            }
        }
        Ok(events.len())
    }

    pub(crate) fn wake(&self) {
        if self.bell.ring() {
            // It fails when it is full, after more rings than there are nanoseconds in a century.
            _ = rustix::io::write(&self.sound, &1_u64.to_ne_bytes());
        }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[inline]
fn of_flags(flags: EventFlags) -> Event {
    // Nearly all events say no more than that.
    if !has(flags, EventFlags::all().difference(EventFlags::IN.union(EventFlags::OUT))) {
        return Event::default()
            .and_if(has(flags, EventFlags::IN), Event::READABLE)
            .and_if(has(flags, EventFlags::OUT), Event::WRITABLE);
    }
    of_all_flags(flags)
}

#[cold]
fn of_all_flags(flags: EventFlags) -> Event {
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

/// So many milliseconds the kernel can be asked to wait: 24 days.
const LONGEST: u128 = i32::MAX as u128;

/// Rounded up: a wait that ends too early would have to be begun again, as one for longer than [`LONGEST`] is.
///
/// A kernel since 5.11 would take nanoseconds (`epoll_pwait2`). rustix calls that always or never, as one of its features says for
/// all who use it in a program, so that older kernels could not be waited for at all; and to ask by `ppoll` first, or by a timer
/// with a descriptor, is a second system call. It would be worth less than it seems, too: timers of the same millisecond
/// share a wake-up this way.
fn whole_milliseconds(timeout: Duration) -> Timespec {
    let milliseconds = timeout.as_nanos().div_ceil(1_000_000).min(LONGEST);
    Timespec::try_from(Duration::from_millis(milliseconds as u64)).expect("a month can be named")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    /// One that looks for longer than any test takes, before it sleeps.
    fn alert() -> Poller {
        let poller = Poller::new(Duration::from_secs(600)).unwrap();
        while !poller.alertness.is_alert() {
            poller.alertness.slept(Duration::ZERO);
        }
        poller
    }

    #[test]
    fn who_looks_is_woken_from_another_thread() {
        let poller = alert();
        thread::scope(|threads| {
            threads.spawn(|| poller.wake());
            poller.wait(None, |_, _| panic!("nothing has happened to any socket")).unwrap();
        });
        assert!(poller.alertness.is_alert(), "it has not slept");
    }

    #[test]
    fn who_looks_sees_what_comes_meanwhile() {
        let poller = alert();
        let (one, mut other) = UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        poller.add(one.as_fd(), 7).unwrap();
        // That it can be written to is there at once.
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
    fn a_wait_is_never_shorter_than_it_was_asked_for() {
        let asked = [0, 1, 999_999, 1_000_000, 1_000_001, 5_200_000].map(Duration::from_nanos);
        let waits = asked.map(|timeout| Duration::try_from(whole_milliseconds(timeout)).unwrap());
        assert_eq!(waits, [0, 1, 1, 1, 2, 6].map(Duration::from_millis));
        let days = Duration::try_from(whole_milliseconds(Duration::MAX)).unwrap().as_secs() / 86_400;
        assert_eq!(days, 24, "and again");
    }

    #[test]
    fn a_look_in_vain_ends_with_the_time_that_it_was_given() {
        let poller = alert();
        poller.wait(Some(Duration::from_millis(1)), |_, _| panic!("there are no sockets")).unwrap();
        assert!(!poller.alertness.is_alert());
    }
}
