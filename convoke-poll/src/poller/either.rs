//! Both pollers behind one type, so that tests on Linux run with the poller of other systems too.

use std::io;
use std::time::Duration;

use super::{Handle, epoll, portable};
use crate::readiness::Event;

/// A source of events, each with the key of a socket.
#[derive(Debug)]
pub(crate) enum Poller {
    Epoll(epoll::Poller),
    Portable(portable::Poller),
}

impl Poller {
    /// Creates the poller of Linux. `longest_spin` limits the polling before a sleep.
    pub(crate) fn new(longest_spin: Duration) -> io::Result<Self> {
        epoll::Poller::new(longest_spin).map(Self::Epoll)
    }

    /// Creates the poller that works on every system.
    pub(crate) fn portable(wants_edges: bool) -> io::Result<Self> {
        portable::Poller::portable(wants_edges).map(Self::Portable)
    }

    /// Returns true if events are edge-triggered. Otherwise each one is requested with [`arm`](Self::arm).
    #[inline]
    pub(crate) fn has_edges(&self) -> bool {
        match self {
            Self::Epoll(poller) => poller.has_edges(),
            Self::Portable(poller) => poller.has_edges(),
        }
    }

    /// Registers a socket. It must stay open until `delete`.
    pub(crate) fn add(&self, socket: Handle<'_>, key: usize) -> io::Result<()> {
        match self {
            Self::Epoll(poller) => poller.add(socket, key),
            Self::Portable(poller) => poller.add(socket, key),
        }
    }

    /// Requests one event for these directions, if events are not edge-triggered.
    pub(crate) fn arm(&self, socket: Handle<'_>, key: usize, read: bool, write: bool) -> io::Result<()> {
        match self {
            Self::Epoll(poller) => poller.arm(socket, key, read, write),
            Self::Portable(poller) => poller.arm(socket, key, read, write),
        }
    }

    /// Removes a socket. A socket that is not registered is not an error.
    pub(crate) fn delete(&self, socket: Handle<'_>) {
        match self {
            Self::Epoll(poller) => poller.delete(socket),
            Self::Portable(poller) => poller.delete(socket),
        }
    }

    /// Waits for events until the timeout, or until it is woken. Calls `each` with the key and the event.
    #[inline]
    pub(crate) fn wait(&self, timeout: Option<Duration>, each: impl FnMut(usize, Event)) -> io::Result<()> {
        match self {
            Self::Epoll(poller) => poller.wait(timeout, each),
            Self::Portable(poller) => poller.wait(timeout, each),
        }
    }

    /// Ends the current wait or, if there is none, the next one.
    pub(crate) fn wake(&self) {
        match self {
            Self::Epoll(poller) => poller.wake(),
            Self::Portable(poller) => poller.wake(),
        }
    }

    /// Returns a descriptor that is readable when there are events.
    pub(crate) fn descriptor(&self) -> Option<Handle<'_>> {
        match self {
            Self::Epoll(poller) => poller.descriptor(),
            Self::Portable(poller) => poller.descriptor(),
        }
    }
}
