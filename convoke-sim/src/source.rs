//! A socket as its program sees it: an id in the world, closed when it is dropped.

use core::task::Waker;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;

use convoke_io::driver::{
    Accepted, Address, InFlight, Interest, MulticastGroup, OperationId, Request, SocketOption, Source,
    Submitted, Ticket,
};

use crate::world::{HostId, SocketId, Taking, World, WorldState};

pub(crate) struct SimSource {
    world: Arc<World>,
    host: HostId,
    id: SocketId,
}

impl SimSource {
    pub(crate) fn new(world: Arc<World>, host: HostId, id: SocketId) -> Self {
        Self { world, host, id }
    }

    /// Performs an operation of the host, at which a fault may strike.
    fn operate<T>(
        &self,
        what: &str,
        act: impl FnOnce(&mut WorldState, SocketId) -> io::Result<T>,
    ) -> io::Result<T> {
        self.world.with(|state| {
            state.begin(self.host, Some(self.id), what)?;
            act(state, self.id)
        })
    }
}

impl SimSource {
    /// Performs an operation that does not wait. On a crashed host it reports success and has no effect.
    fn do_now(
        &self,
        what: &str,
        act: impl FnOnce(&mut WorldState, SocketId) -> io::Result<()>,
    ) -> io::Result<()> {
        self.world.with(|state| {
            let done = state.begin(self.host, Some(self.id), what).and_then(|()| act(state, self.id));
            if state.is_dead(self.id) { Ok(()) } else { done }
        })
    }
}

impl Source for SimSource {
    fn submit(&self, operation: InFlight) -> Submitted {
        let what = match operation.request() {
            Request::Connect(_) => Some("connect"),
            Request::Read(_) => Some("read"),
            Request::Write(_) => Some("write"),
            _ => None,
        };
        self.world.with(|state| {
            let begun = what.map_or(Ok(()), |what| state.begin(self.host, Some(self.id), what));
            match begun {
                Ok(()) => state.submit(self.id, operation),
                Err(_) if state.is_dead(self.id) => state.submit(self.id, operation),
                Err(fault) => Submitted::Done(operation, Err(fault)),
            }
        })
    }

    fn cancel(&self, operation: OperationId) -> Option<InFlight> {
        self.world.with(|state| state.cancel(self.id, operation))
    }

    fn watch(&self, interest: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket> {
        let waker = waker.clone();
        let (ticket, before) = self.world.with(|state| state.watch(self.id, interest, ticket, waker));
        drop(before);
        ticket
    }

    fn unwatch(&self, interest: Interest, ticket: Ticket) {
        drop(self.world.with(|state| state.unwatch(self.id, interest, ticket)));
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.operate("read", |state, id| state.read(id, buffer, Taking::Takes))
    }

    fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut all = vec![0; buffers.iter().map(|buffer| buffer.len()).sum()];
        let count = self.try_read(&mut all)?;
        let mut left = &all[..count];
        for buffer in buffers {
            let (part, rest) = left.split_at(left.len().min(buffer.len()));
            buffer[..part.len()].copy_from_slice(part);
            left = rest;
        }
        Ok(count)
    }

    fn try_peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.operate("peek", |state, id| state.read(id, buffer, Taking::Peeks))
    }

    fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.operate("write", |state, id| state.write(id, buffer))
    }

    fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let all: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.iter()).copied().collect();
        self.try_write(&all)
    }

    fn try_accept(&self) -> io::Result<Accepted> {
        let (id, peer) = self.operate("accept", WorldState::accept)?;
        Ok(Accepted { source: Arc::new(Self::new(self.world.clone(), self.host, id)), peer })
    }

    fn try_receive_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        self.operate("receive", |state, id| state.receive_from(id, buffer, Taking::Takes))
    }

    fn try_peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        self.operate("peek", |state, id| state.receive_from(id, buffer, Taking::Peeks))
    }

    fn try_send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize> {
        self.operate("send", |state, id| state.send_to(id, buffer, Some(to)))
    }

    fn connect_datagrams(&self, to: &Address) -> io::Result<()> {
        self.do_now("connect", |state, id| state.connect_datagrams(id, to))
    }

    fn bind(&self, at: &Address) -> io::Result<()> {
        self.do_now("bind", |state, id| state.bind_stream(id, at))
    }

    fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        self.do_now("shut down", |state, id| state.shut_down_stream(id, how))
    }

    fn local_address(&self) -> io::Result<Address> {
        self.world.with(|state| state.local_address(self.id))
    }

    fn peer_address(&self) -> io::Result<Address> {
        self.world.with(|state| state.peer_address(self.id))
    }

    fn set_option(&self, option: SocketOption) -> io::Result<()> {
        self.world.with(|state| state.set_option(self.id, option))
    }

    fn option(&self, option: SocketOption) -> io::Result<SocketOption> {
        self.world.with(|state| state.option(self.id, option))
    }

    fn join_multicast(&self, group: &MulticastGroup) -> io::Result<()> {
        self.do_now("join", |state, id| state.set_membership(id, group.address(), true))
    }

    fn leave_multicast(&self, group: &MulticastGroup) -> io::Result<()> {
        self.do_now("leave", |state, id| state.set_membership(id, group.address(), false))
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.world.with(|state| state.take_error(self.id))
    }
}

impl Drop for SimSource {
    fn drop(&mut self) {
        let crashed = self.world.with(|state| {
            let crashed = state.take_crashed(self.id);
            if crashed.is_none() {
                state.close(self.id);
            }
            crashed
        });
        drop(crashed);
    }
}

impl fmt::Debug for SimSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimSource").field("id", &self.id).finish_non_exhaustive()
    }
}
