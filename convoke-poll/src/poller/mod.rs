//! The kernel's interface for events: epoll on Linux, and the crate `polling` elsewhere. This file chooses
//! between the two, which have the same methods.
//!
//! `add`, `arm`, `delete` and `wake` may be called from any thread, also during a `wait`. Only one thread
//! calls `wait`.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod adaptive_spin;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod epoll;
mod portable;

use std::io;
#[cfg(unix)]
pub(crate) use std::os::fd::BorrowedFd as Handle;
#[cfg(windows)]
pub(crate) use std::os::windows::io::BorrowedSocket as Handle;
use std::time::Duration;

use crate::readiness::Event;

/// A source of events, each with the key of a socket.
#[derive(Debug)]
pub(crate) enum Poller {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Epoll(epoll::Poller),
    Portable(portable::Poller),
}

impl Poller {
    /// Creates the best poller of this system. `longest_spin` limits the polling before a sleep, where that
    /// is supported.
    pub(crate) fn new(longest_spin: Duration) -> io::Result<Self> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return epoll::Poller::new(longest_spin).map(Self::Epoll);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            _ = longest_spin;
            Self::portable(true)
        }
    }

    /// Creates the poller that works on every system.
    pub(crate) fn portable(wants_edges: bool) -> io::Result<Self> {
        portable::Poller::new(wants_edges).map(Self::Portable)
    }

    /// Returns true if events are edge-triggered. Otherwise each one is requested with [`arm`](Self::arm).
    #[inline]
    pub(crate) fn has_edges(&self) -> bool {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(_) => true,
            Self::Portable(poller) => poller.has_edges(),
        }
    }

    /// Registers a socket. It must stay open until `delete`.
    pub(crate) fn add(&self, socket: Handle<'_>, key: usize) -> io::Result<()> {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(poller) => poller.add(socket, key),
            Self::Portable(poller) => poller.add(socket, key),
        }
    }

    /// Requests one event for these directions, if events are not edge-triggered.
    pub(crate) fn arm(&self, socket: Handle<'_>, key: usize, read: bool, write: bool) -> io::Result<()> {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(_) => Ok(()),
            Self::Portable(poller) => poller.arm(socket, key, read, write),
        }
    }

    /// Removes a socket. A socket that is not registered is not an error.
    pub(crate) fn delete(&self, socket: Handle<'_>) {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(poller) => poller.delete(socket),
            Self::Portable(poller) => poller.delete(socket),
        }
    }

    /// Waits for events until the timeout, or until it is woken. Calls `each` with the key and the event.
    #[inline]
    pub(crate) fn wait(&self, timeout: Option<Duration>, each: impl FnMut(usize, Event)) -> io::Result<()> {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(poller) => poller.wait(timeout, each),
            Self::Portable(poller) => poller.wait(timeout, each),
        }
    }

    /// Ends the current wait or, if there is none, the next one.
    pub(crate) fn wake(&self) {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(poller) => poller.wake(),
            Self::Portable(poller) => poller.wake(),
        }
    }

    /// Returns a descriptor that is readable when there are events.
    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> Option<Handle<'_>> {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(poller) => Some(poller.descriptor()),
            Self::Portable(poller) => poller.descriptor(),
        }
    }
}
