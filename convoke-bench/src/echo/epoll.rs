//! Bare epoll, edge-triggered: the wait of the hand-written server and of the load. The standard library
//! cannot wait for several sockets.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::linux::check;

/// The maximum number of events of one wait.
const MAX_EVENTS: usize = 1024;

/// A set of sockets that reports each when it becomes readable or writable.
pub(super) struct Epoll {
    descriptor: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: takes no pointer.
        let descriptor = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the call above has succeeded, and nothing else knows its descriptor.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Self { descriptor, events: Vec::with_capacity(MAX_EVENTS) })
    }

    /// Watches a socket until it is closed; its events carry `key`.
    pub(super) fn add(&self, socket: &impl AsRawFd, key: usize) -> io::Result<()> {
        let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
        let mut event = libc::epoll_event { events: interest as u32, u64: key as u64 };
        let (descriptor, socket) = (self.descriptor.as_raw_fd(), socket.as_raw_fd());
        // SAFETY: the event lives on our stack for the call, which copies it.
        check(unsafe { libc::epoll_ctl(descriptor, libc::EPOLL_CTL_ADD, socket, &raw mut event) })?;
        Ok(())
    }

    /// Waits for events, at most `milliseconds` (forever, if negative). Returns their number.
    pub(super) fn wait(&mut self, milliseconds: i32) -> io::Result<usize> {
        self.events.clear();
        let (descriptor, capacity) =
            (self.descriptor.as_raw_fd(), self.events.capacity().min(MAX_EVENTS) as i32);
        loop {
            // SAFETY: the pointer has capacity for this many events, and the kernel does not keep it after
            // the call.
            let waited =
                unsafe { libc::epoll_wait(descriptor, self.events.as_mut_ptr(), capacity, milliseconds) };
            match check(waited) {
                Ok(count) => {
                    // SAFETY: the kernel has just written `count` events.
                    unsafe { self.events.set_len(count as usize) };
                    return Ok(count as usize);
                }
                // A signal, or a debugger: wait again.
                Err(problem) if problem.kind() == io::ErrorKind::Interrupted => {}
                Err(problem) => return Err(problem),
            }
        }
    }

    /// Returns the key of one of the events of the last wait.
    pub(super) fn key(&self, event: usize) -> usize {
        self.events[event].u64 as usize
    }
}
