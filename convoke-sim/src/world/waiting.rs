//! Waiters of a socket: parked operations, and watchers that try again by themselves. When the socket
//! changes, parked operations that can finish do; then, if the socket is still ready, the watchers are woken.

use core::task::Waker;
use std::io;

use convoke_io::driver::{
    Finished, InFlight, Interest, OperationId, Parked, Request, RequestMut, Submitted, Ticket, Watchers,
};

use super::socket::{Kind, Socket, gone};
use super::{SocketId, Taking, WorldState};

/// The waiters for one direction of a socket.
#[derive(Debug, Default)]
pub(super) struct Direction {
    parked: Parked,
    watchers: Watchers,
}

impl WorldState {
    /// Performs an operation, or parks it if it would block.
    pub(crate) fn submit(&mut self, id: SocketId, mut operation: InFlight) -> Submitted {
        if let Some(dead) = self.crashed.get(id) {
            dead.direction(operation.request().interest()).parked.push(operation);
            return Submitted::Kept;
        }
        if let Request::Connect(to) = operation.request() {
            let to = (**to).clone();
            if let Err(error) = self.connect(id, &to) {
                return Submitted::Done(operation, Err(error));
            }
        }
        if let Some(result) = self.attempt(id, &mut operation) {
            return Submitted::Done(operation, result);
        }
        let interest = operation.request().interest();
        let Ok(socket) = self.socket(id) else { return Submitted::Done(operation, Err(gone())) };
        socket.direction(interest).parked.push(operation);
        let host = socket.host;
        self.host(host).in_flight += 1;
        Submitted::Kept
    }

    /// Returns a parked operation to its owner.
    pub(crate) fn cancel(&mut self, id: SocketId, operation: OperationId) -> Option<InFlight> {
        if let Some(dead) = self.crashed.get(id) {
            return dead.take_parked(operation);
        }
        let socket = self.sockets.get_mut(id)?;
        let taken = socket.take_parked(operation)?;
        let host = socket.host;
        self.host(host).in_flight -= 1;
        Some(taken)
    }

    /// Adds a watcher that waits until an attempt may succeed, unless it may now. The caller drops the
    /// returned waker without the lock.
    pub(crate) fn watch(
        &mut self,
        id: SocketId,
        interest: Interest,
        ticket: Ticket,
        waker: Waker,
    ) -> (Option<Ticket>, Option<Waker>) {
        if let Some(dead) = self.crashed.get(id) {
            let watched = dead.direction(interest).watchers.watch(ticket, waker);
            return (Some(watched.ticket), watched.before);
        }
        if self.is_ready(id, interest) {
            return (None, Some(waker));
        }
        let Some(socket) = self.sockets.get_mut(id) else { return (None, Some(waker)) };
        let watched = socket.direction(interest).watchers.watch(ticket, waker);
        let host = socket.host;
        self.host(host).in_flight += usize::from(watched.is_new);
        (Some(watched.ticket), watched.before)
    }

    /// Removes a watcher. The caller drops its waker without the lock.
    pub(crate) fn unwatch(&mut self, id: SocketId, interest: Interest, ticket: Ticket) -> Option<Waker> {
        if let Some(dead) = self.crashed.get(id) {
            return dead.direction(interest).watchers.unwatch(ticket);
        }
        let socket = self.sockets.get_mut(id)?;
        let waker = socket.direction(interest).watchers.unwatch(ticket)?;
        let host = socket.host;
        self.host(host).in_flight -= 1;
        Some(waker)
    }

    /// Finishes what can be finished after a change of the socket.
    pub(super) fn settle(&mut self, id: SocketId) {
        self.settle_direction(id, Interest::Read);
        self.settle_direction(id, Interest::Write);
    }

    /// Finishes what can be finished after a change that concerns only reading, or only writing.
    pub(super) fn settle_direction(&mut self, id: SocketId, interest: Interest) {
        self.settle_operations(id, interest);
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if socket.direction(interest).watchers.is_empty() || !self.is_ready(id, interest) {
            return;
        }
        self.wake_watchers(id, interest);
    }

    /// Wakes all watchers of one direction.
    pub(super) fn wake_watchers(&mut self, id: SocketId, interest: Interest) {
        while let Some(socket) = self.sockets.get_mut(id)
            && let Some(waker) = socket.direction(interest).watchers.take()
        {
            let host = socket.host;
            self.notify(host, Finished::waking(waker));
        }
    }

    fn settle_operations(&mut self, id: SocketId, interest: Interest) {
        while let Some(socket) = self.sockets.get_mut(id) {
            let host = socket.host;
            let Some(mut operation) = socket.direction(interest).parked.pop() else { return };
            let result = self.attempt(id, &mut operation);
            match (result, self.sockets.get_mut(id)) {
                (None, Some(socket)) => return socket.direction(interest).parked.put_back(operation),
                (result, _) => {
                    self.notify(host, operation.finish(result.unwrap_or_else(|| Err(gone()))));
                }
            }
        }
    }

    /// Fails all waiters of a socket that is gone.
    pub(super) fn fail_waiters(&mut self, mut socket: Socket) {
        for direction in [&mut socket.reading, &mut socket.writing] {
            while let Some(operation) = direction.parked.pop() {
                self.notify(socket.host, operation.finish(Err(gone())));
            }
            while let Some(waker) = direction.watchers.take() {
                self.notify(socket.host, Finished::waking(waker));
            }
        }
    }

    /// Attempts an operation. Returns `None` if it would block.
    fn attempt(&mut self, id: SocketId, operation: &mut InFlight) -> Option<io::Result<usize>> {
        let result = match operation.request_mut() {
            RequestMut::Connect(_) => self.connection(id),
            RequestMut::Read(buffer) => self.read(id, buffer, Taking::Takes),
            RequestMut::Write(buffer) => self.write(id, buffer),
            other => Err(convoke_io::driver::unsupported(&format!("{other:?}"))),
        };
        let waits = result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        (!waits).then_some(result)
    }

    /// Returns true if an attempt would not block. A socket that is gone is ready: the attempt returns the
    /// error.
    fn is_ready(&mut self, id: SocketId, interest: Interest) -> bool {
        let Some(socket) = self.sockets.get(id) else { return true };
        match (&socket.kind, interest) {
            (Kind::Stream(stream), Interest::Read) => stream.is_readable(),
            (Kind::Stream(_), Interest::Write) => self.is_writable(id),
            (Kind::Listener(listener), Interest::Read) => !listener.pending.is_empty(),
            (Kind::Datagrams(datagrams), Interest::Read) => !datagrams.is_empty(),
            (Kind::Listener(_) | Kind::Datagrams(_), Interest::Write) => true,
        }
    }
}

impl Socket {
    fn take_parked(&mut self, operation: OperationId) -> Option<InFlight> {
        let reading = self.reading.parked.remove(operation);
        reading.or_else(|| self.writing.parked.remove(operation))
    }

    fn direction(&mut self, interest: Interest) -> &mut Direction {
        match interest {
            Interest::Read => &mut self.reading,
            Interest::Write => &mut self.writing,
        }
    }
}
