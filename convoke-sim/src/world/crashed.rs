//! Sockets of hosts that have crashed. The network does not know them any more; but the program that holds them is still in
//! memory, and in the poll in which the crash struck it even goes on to its next wait. So they are kept here, where whoever
//! waits for one waits, and whatever is done to one reaches nobody.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use convoke_io::driver::Address;

use super::socket::{Holder, Kind, Socket, gone};
use super::stream::Stream;
use super::{HostId, SocketId, State};

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

impl State {
    /// The host is gone, without a word: its peers do not hear of it, and neither do those of its tasks that wait.
    pub(crate) fn crash(&mut self, host: HostId) {
        self.note_event(format!("{} crashes", self.name(host)));
        self.crash_disks(host);
        self.underway.forsake(host);
        let its_own = |socket: &Socket| socket.host == host && socket.holder != Holder::Nobody;
        let its_own: Vec<_> = self.sockets.extract_if(.., |_, socket| its_own(socket)).collect();
        for (id, mut socket) in its_own {
            // What is on its way arrives, as does what a program wrote that has closed its socket.
            if let Some(orphan) = socket.leave_orphan() {
                self.sockets.insert(id, orphan);
            }
            if socket.is_open() {
                self.crashed.sockets.insert(id, socket);
            }
        }
        self.ask_later(host);
        let host = self.host(host);
        host.up = false;
        host.life += 1;
        host.open = 0;
        host.in_flight = 0;
        host.forget_names();
    }

    /// A host begins to open a socket. One that has crashed, or does so now, gets one that leads nowhere.
    pub(super) fn begin_to_open(
        &mut self,
        host: HostId,
        life: u64,
        what: &str,
        local: &Address,
    ) -> io::Result<Option<SocketId>> {
        if self.host(host).life == life {
            if !self.host(host).up {
                return Err(gone());
            }
            let begun = self.begin(host, None, what);
            if self.host(host).life == life {
                begun?;
                self.descriptor(host)?;
                return Ok(None);
            }
        }
        let id = self.add(host, local.clone(), Kind::Stream(Stream::new()), Holder::Nobody);
        let buried = self.sockets.remove(&id).map(|socket| (id, socket));
        self.crashed.sockets.extend(buried);
        Ok(Some(id))
    }

    /// Whether its host has crashed.
    pub(crate) fn is_dead(&self, id: SocketId) -> bool {
        self.crashed.contain(id)
    }

    /// The program of a crashed host is dropped, and its socket with it. Dropped without the lock: it may know wakers.
    pub(crate) fn unearth(&mut self, id: SocketId) -> Option<Unearthed> {
        self.crashed.sockets.remove(&id).map(|socket| Unearthed { _socket: socket })
    }
}

/// A socket that nobody holds any more.
pub(crate) struct Unearthed {
    _socket: Socket,
}

/// What a host that has crashed hears of all that it does: that it must wait. Nobody will wake it.
pub(super) fn waits_for_ever() -> io::Error {
    ErrorKind::WouldBlock.into()
}
