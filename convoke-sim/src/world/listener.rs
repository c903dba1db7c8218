//! Listening sockets and their backlog.

use std::collections::VecDeque;
use std::io;

use convoke_io::driver::{Address, unsupported};

use super::socket::{Holder, Kind};
use super::{SocketId, WorldState};

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) pending: VecDeque<SocketId>,
    backlog: usize,
}

impl Listener {
    pub(super) fn new(backlog: u32) -> Self {
        Self { pending: VecDeque::new(), backlog: backlog.max(1) as usize }
    }

    pub(super) fn is_full(&self) -> bool {
        self.pending.len() >= self.backlog
    }
}

impl WorldState {
    /// Accepts a connection. Returns its socket and the address of the peer.
    pub(crate) fn accept(&mut self, id: SocketId) -> io::Result<(SocketId, Address)> {
        let host = self.socket(id)?.host;
        let Kind::Listener(listener) = &self.socket(id)?.kind else {
            return Err(unsupported("connections to accept from this source"));
        };
        let Some(first) = listener.pending.front().copied() else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        // Without a free descriptor the connection stays in the backlog, as in a real kernel.
        self.descriptor(host)?;
        if let Kind::Listener(listener) = &mut self.socket(id)?.kind {
            listener.pending.pop_front();
        }
        let accepted = self.socket(first)?;
        accepted.holder = Holder::Program;
        let peer = accepted.as_stream().map_or(Address::Unnamed, |stream| stream.peer.clone());
        self.host(host).open += 1;
        Ok((first, peer))
    }
}
