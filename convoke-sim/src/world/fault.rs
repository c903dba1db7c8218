//! Faults: what is done to a program on purpose, at one of its operations or from outside.

use std::fmt;
use std::io::{self, ErrorKind};

use super::crashed::waits_for_ever;
use super::stream::Phase;
use super::{HostId, SocketId, State};

/// What strikes a host at one of its operations: see [`explore_faults`](crate::explore_faults).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The operation fails, and nothing else happens.
    Error,
    /// The connection is reset, and both ends hear of it. Without a connection the operation fails.
    Reset,
    /// The connection has timed out: this end hears of it, the other not before it sends something.
    Timeout,
    /// The host crashes before the operation has done anything, and is started again a second later. An operation that does not wait,
    /// like opening a socket, returns as if nothing were wrong; the next one that waits does so for ever.
    Crash,
}

impl Fault {
    /// All of them.
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

/// Which fault strikes where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) host: HostId,
    /// Before which of its operations, counted from zero.
    pub(crate) operation: usize,
    pub(crate) fault: Fault,
    pub(crate) struck: bool,
}

impl State {
    /// A host begins an operation. If a fault strikes there, it fails; but that of a host which has crashed waits.
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
        self.note_event(format!("{}: {fault} strikes operation {number}, `{what}`", self.name(host)));
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
                // This call says it.
                stream.take_error();
            }
        }
        why.into()
    }

    /// All connections between two hosts are reset.
    pub(crate) fn reset_between(&mut self, one: HostId, other: HostId) {
        for id in self.streams_of(one, other) {
            self.abort_other_end(id);
            self.fail(id, ErrorKind::ConnectionReset);
        }
    }

    /// A host forgets its connections with another, which does not hear of it.
    pub(crate) fn half_open(&mut self, gone: HostId, left: HostId) {
        for id in self.streams_of(gone, left) {
            self.fail(id, ErrorKind::ConnectionAborted);
        }
    }

    fn abort_other_end(&mut self, id: SocketId) {
        if let Some((other, _)) = self.stream_mut(id).and_then(|stream| stream.other) {
            self.fail(other, ErrorKind::ConnectionReset);
        }
    }

    /// The ends on one host of its connections with another.
    fn streams_of(&mut self, host: HostId, other: HostId) -> Vec<SocketId> {
        let mut found = Vec::new();
        for (id, socket) in &mut self.sockets {
            let on_host = socket.host == host;
            let connected = socket.as_stream().and_then(|stream| stream.other);
            if on_host && connected.is_some_and(|(_, there)| there == other) {
                found.push(*id);
            }
        }
        found
    }
}
