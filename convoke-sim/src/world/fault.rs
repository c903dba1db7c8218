//! Faults that are injected into a program at one of its operations, or from outside.

use std::fmt;
use std::io::{self, ErrorKind};

use super::crashed::waits_for_ever;
use super::stream::Phase;
use super::{HostId, SocketId, WorldState};

/// A fault that strikes a host at one of its operations: see [`explore_faults`](crate::explore_faults).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The operation fails, without another effect.
    Error,
    /// The connection is reset, with an error at both ends. Without a connection, only the operation fails.
    Reset,
    /// The connection times out at this end. The other end notices when it sends something.
    Timeout,
    /// The host crashes before the operation takes effect, and restarts a second later. An operation that
    /// does not wait, such as opening a socket, returns as if it had succeeded; the next one that waits never
    /// completes.
    Crash,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 4] = [Self::Error, Self::Reset, Self::Timeout, Self::Crash];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "an error",
            Self::Reset => "a reset",
            Self::Timeout => "a timeout",
            Self::Crash => "a crash",
        })
    }
}

/// The fault to inject, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) host: HostId,
    /// The index of the operation, from zero, before which it strikes.
    pub(crate) operation: usize,
    pub(crate) fault: Fault,
    pub(crate) struck: bool,
}

impl WorldState {
    /// Begins an operation of a host. Fails if a fault strikes here; on a crashed host it would block.
    pub(crate) fn begin(&mut self, host: HostId, on: Option<SocketId>, what: &str) -> io::Result<()> {
        if on.is_some_and(|id| self.crashed.contain(id)) {
            return Err(waits_for_ever());
        }
        let number = self.host(host).operations;
        self.host(host).operations += 1;
        let Some(plan) = self.plan.as_mut().filter(|plan| plan.host == host && plan.operation == number)
        else {
            return Ok(());
        };
        plan.struck = true;
        let fault = plan.fault;
        self.note_break(format!("{}: {fault} strikes operation {number}, `{what}`", self.name(host)));
        Err(self.strike(host, on, fault))
    }

    fn strike(&mut self, host: HostId, on: Option<SocketId>, fault: Fault) -> io::Error {
        let connection =
            on.filter(|id| self.stream_mut(*id).is_some_and(|stream| stream.phase == Phase::Open));
        let why = match fault {
            Fault::Error => return io::Error::other("a fault of the simulation"),
            Fault::Crash => {
                self.crash(host);
                return waits_for_ever();
            }
            Fault::Reset => ErrorKind::ConnectionReset,
            Fault::Timeout => ErrorKind::TimedOut,
        };
        if let Some(id) = connection {
            if fault == Fault::Reset {
                self.abort_other_end(id);
            }
            self.fail(id, why);
            if let Some(stream) = self.stream_mut(id) {
                // The current call returns this error.
                stream.take_error();
            }
        }
        why.into()
    }

    /// Resets all connections between two hosts.
    pub(crate) fn reset_between(&mut self, one: HostId, other: HostId) {
        self.note_break(format!("{} ✗ {}: connections are reset", self.name(one), self.name(other)));
        for id in self.streams_of(one, other) {
            self.abort_other_end(id);
            self.fail(id, ErrorKind::ConnectionReset);
        }
    }

    /// Drops the connections of one host with another, which is not told.
    pub(crate) fn half_open(&mut self, gone: HostId, left: HostId) {
        self.note_break(format!("{} loses its connections with {}", self.name(gone), self.name(left)));
        for id in self.streams_of(gone, left) {
            self.fail(id, ErrorKind::ConnectionAborted);
        }
    }

    fn abort_other_end(&mut self, id: SocketId) {
        if let Some((other, _)) = self.stream_mut(id).and_then(|stream| stream.other) {
            self.fail(other, ErrorKind::ConnectionReset);
        }
    }

    /// Returns the sockets on `host` that are connected to `other`.
    fn streams_of(&mut self, host: HostId, other: HostId) -> Vec<SocketId> {
        let mut found = Vec::new();
        for (id, socket) in self.sockets.iter_mut() {
            let on_host = socket.host == host;
            let connected = socket.as_stream().and_then(|stream| stream.other);
            if on_host && connected.is_some_and(|(_, there)| there == other) {
                found.push(id);
            }
        }
        found
    }
}
