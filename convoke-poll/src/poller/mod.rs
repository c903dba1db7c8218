//! The kernel's way of saying that something is ready: epoll where there is one, what the crate `polling` has elsewhere.
//! This file chooses; the two have the same methods.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod alertness;
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

/// Says what has happened to which key.
#[derive(Debug)]
pub(crate) enum Poller {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Epoll(epoll::Poller),
    Portable(portable::Poller),
}

impl Poller {
    /// The best that there is. One that can tell an empty look from being woken looks for so long at the most before it
    /// sleeps.
    pub(crate) fn new(longest_look: Duration) -> io::Result<Self> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return epoll::Poller::new(longest_look).map(Self::Epoll);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            _ = longest_look;
            Self::portable(true)
        }
    }

    /// The one that there is everywhere.
    pub(crate) fn portable(wants_edges: bool) -> io::Result<Self> {
        portable::Poller::new(wants_edges).map(Self::Portable)
    }

    /// Whether an event comes each time that something changes, without being asked for. If not, it is asked for with
    /// [`arm`](Self::arm), each time.
    #[inline]
    pub(crate) fn has_edges(&self) -> bool {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(_) => true,
            Self::Portable(poller) => poller.has_edges(),
        }
    }

    /// Takes in a socket, which stays open until it was deleted.
    pub(crate) fn add(&self, socket: Handle<'_>, key: usize) -> io::Result<()> {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(poller) => poller.add(socket, key),
            Self::Portable(poller) => poller.add(socket, key),
        }
    }

    /// Asks for one event in these directions; for pollers without edges.
    pub(crate) fn arm(&self, socket: Handle<'_>, key: usize, read: bool, write: bool) -> io::Result<()> {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(_) => Ok(()),
            Self::Portable(poller) => poller.arm(socket, key, read, write),
        }
    }

    /// Lets go of a socket. One that is not there is not an error.
    pub(crate) fn delete(&self, socket: Handle<'_>) {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(poller) => poller.delete(socket),
            Self::Portable(poller) => poller.delete(socket),
        }
    }

    /// Waits for events, for so long at the most, or until it is woken. Calls `each` with what has happened to which key.
    #[inline]
    pub(crate) fn wait(&self, timeout: Option<Duration>, each: impl FnMut(usize, Event)) -> io::Result<()> {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(poller) => poller.wait(timeout, each),
            Self::Portable(poller) => poller.wait(timeout, each),
        }
    }

    /// Ends the wait that is going on, or the next one.
    pub(crate) fn wake(&self) {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(poller) => poller.wake(),
            Self::Portable(poller) => poller.wake(),
        }
    }

    /// What is readable when there are events.
    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> Option<Handle<'_>> {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Epoll(poller) => Some(poller.descriptor()),
            Self::Portable(poller) => poller.descriptor(),
        }
    }
}
