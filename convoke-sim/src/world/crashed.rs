//! Sockets of hosts that have crashed. The network does not know them any more, but the program that holds
//! them is still in memory, and the poll in which the crash struck continues to its next wait. So they are
//! stored here: waits for them never end, and calls on them have no effect.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use convoke_io::driver::Address;

use super::socket::{Holder, Kind, Socket, gone};
use super::stream::Stream;
use super::{HostId, SocketId, WorldState};

#[derive(Debug, Default)]
pub(crate) struct CrashedSockets {
    sockets: BTreeMap<SocketId, Socket>,
}

impl CrashedSockets {
    pub(super) fn get(&mut self, id: SocketId) -> Option<&mut Socket> {
        self.sockets.get_mut(&id)
    }

    pub(super) fn contain(&self, id: SocketId) -> bool {
        self.sockets.contains_key(&id)
    }
}

impl WorldState {
    /// Crashes a host. Neither its peers nor its waiting tasks are told.
    pub(crate) fn crash(&mut self, host: HostId) {
        self.note_break(format!("{} crashes", self.name(host)));
        self.crash_disks(host);
        self.underway.abandon(host);
        let its_own = |socket: &Socket| socket.host == host && socket.holder != Holder::Network;
        let its_own = self.sockets.iter().filter(|(_, socket)| its_own(socket)).map(|(id, _)| id);
        for id in its_own.collect::<Vec<_>>() {
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            // Bytes in transit still arrive, and so does what a program wrote to a socket that it has closed.
            let lost = match socket.leave_orphan() {
                Some(orphan) => Some(core::mem::replace(socket, orphan)),
                None => self.sockets.remove(id),
            };
            self.crashed.sockets.extend(lost.filter(Socket::is_open).map(|socket| (id, socket)));
        }
        self.schedule_probes(host);
        self.release_notifications(host);
        let host = self.host(host);
        host.up = false;
        host.run_number += 1;
        host.open = 0;
        host.in_flight = 0;
        host.forget_names();
    }

    /// Begins to open a socket. Returns a dead socket if the host has crashed or crashes at this operation.
    pub(super) fn begin_to_open(
        &mut self,
        host: HostId,
        run_number: u64,
        what: &str,
        local: &Address,
    ) -> io::Result<Option<SocketId>> {
        if self.host(host).run_number == run_number {
            if !self.host(host).up {
                return Err(gone());
            }
            let begun = self.begin(host, None, what);
            if self.host(host).run_number == run_number {
                begun?;
                self.descriptor(host)?;
                return Ok(None);
            }
        }
        let id = self.add(host, local.clone(), Kind::Stream(Stream::new()), Holder::Network);
        let dead = self.sockets.remove(id).map(|socket| (id, socket));
        self.crashed.sockets.extend(dead);
        Ok(Some(id))
    }

    /// Returns true if the host of this socket has crashed.
    pub(crate) fn is_dead(&self, id: SocketId) -> bool {
        self.crashed.contain(id)
    }

    /// Removes the socket of a crashed host when its program is dropped. The caller drops it without the
    /// lock, because it may own wakers.
    pub(crate) fn take_crashed(&mut self, id: SocketId) -> Option<CrashedSocket> {
        self.crashed.sockets.remove(&id).map(|socket| CrashedSocket { _socket: socket })
    }
}

/// A socket of a crashed host whose program was dropped.
pub(crate) struct CrashedSocket {
    _socket: Socket,
}

/// Returns the error of every operation on a crashed host: it would block. No wake will follow.
pub(super) fn waits_for_ever() -> io::Error {
    ErrorKind::WouldBlock.into()
}
