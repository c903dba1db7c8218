//! epoll with nothing around it, edge-triggered: what the hand-written server and the load wait with. Here because the
//! standard library has no way to wait for several sockets.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::linux::check;

/// How many events one wait brings at the most.
const ROOM: usize = 1024;

/// Tells which of its sockets can be read or written, once for each time that one becomes so.
pub(super) struct Epoll {
    descriptor: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: takes no pointer.
        let descriptor = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the call above has succeeded, and its descriptor is known to nobody else.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Self { descriptor, events: Vec::with_capacity(ROOM) })
    }

    /// Watches a socket, which is taken out when it is closed; its events come with `key`.
    pub(super) fn add(&self, socket: &impl AsRawFd, key: usize) -> io::Result<()> {
        let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
        let mut event = libc::epoll_event { events: interest as u32, u64: key as u64 };
        let (descriptor, socket) = (self.descriptor.as_raw_fd(), socket.as_raw_fd());
        // SAFETY: the event lives on our stack for the call, which copies it.
        check(unsafe { libc::epoll_ctl(descriptor, libc::EPOLL_CTL_ADD, socket, &raw mut event) })?;
        Ok(())
    }

    /// Waits for events, at most so many milliseconds (for ever, if negative); says how many there are.
    pub(super) fn wait(&mut self, milliseconds: i32) -> io::Result<usize> {
        self.events.clear();
        let (descriptor, room) = (self.descriptor.as_raw_fd(), self.events.capacity().min(ROOM) as i32);
        loop {
            // SAFETY: there is room for so many events behind the pointer; the kernel keeps it no longer than the call.
            let waited =
                unsafe { libc::epoll_wait(descriptor, self.events.as_mut_ptr(), room, milliseconds) };
            match check(waited) {
                Ok(count) => {
                    // SAFETY: the kernel has just written so many.
                    unsafe { self.events.set_len(count as usize) };
                    return Ok(count as usize);
                }
                // A signal, or a debugger: not what was waited for.
                Err(problem) if problem.kind() == io::ErrorKind::Interrupted => {}
                Err(problem) => return Err(problem),
            }
        }
    }

    /// The key of one of the events that the last wait has brought.
    pub(super) fn key(&self, event: usize) -> usize {
        self.events[event].u64 as usize
    }
}
