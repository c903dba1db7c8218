//! Operations that wait for a socket: when it changes, those whose turn has come are finished.

use std::io;

use convoke_io::driver::{InFlight, Interest, OperationId, Parked, Request, Submitted};

use super::socket::{Kind, Socket, gone};
use super::{SocketId, State};

impl State {
    /// Takes an operation, or does what it asks for.
    pub(crate) fn submit(&mut self, id: SocketId, mut operation: InFlight) -> Submitted {
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
        socket.parked(interest).push(operation);
        let host = socket.host;
        self.host(host).in_flight += 1;
        Submitted::Kept
    }

    /// Hands back an operation that waits.
    pub(crate) fn cancel(&mut self, id: SocketId, operation: OperationId) -> Option<InFlight> {
        let socket = self.sockets.get_mut(&id)?;
        let taken = socket.reading.remove(operation).or_else(|| socket.writing.remove(operation))?;
        let host = socket.host;
        self.host(host).in_flight -= 1;
        Some(taken)
    }

    /// The socket has changed: finishes what can be finished.
    pub(super) fn settle(&mut self, id: SocketId) {
        for interest in [Interest::Read, Interest::Write] {
            while let Some(socket) = self.sockets.get_mut(&id) {
                let host = socket.host;
                let Some(mut operation) = socket.parked(interest).pop() else { break };
                let result = self.attempt(id, &mut operation);
                match (result, self.sockets.get_mut(&id)) {
                    (None, Some(socket)) => {
                        socket.parked(interest).put_back(operation);
                        break;
                    }
                    (result, _) => {
                        self.host(host).in_flight -= 1;
                        self.told.push(operation.finish(result.unwrap_or_else(|| Err(gone()))));
                    }
                }
            }
        }
    }

    /// What comes of it, if it does not have to wait.
    fn attempt(&mut self, id: SocketId, operation: &mut InFlight) -> Option<io::Result<usize>> {
        let result = match operation.request_mut() {
            Request::Ready(interest) => {
                let interest = *interest;
                return self.is_ready(id, interest).then_some(Ok(0));
            }
            Request::Connect(_) => self.connection(id),
            Request::Read(room) => self.read(id, room.as_mut_slice(), false),
            Request::Write(words) => self.write(id, words.as_slice()),
            other => Err(convoke_io::driver::unsupported(&format!("{other:?}"))),
        };
        let waits = result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        (!waits).then_some(result)
    }

    /// Whether an attempt would not block. A socket that is gone is ready to say so.
    fn is_ready(&mut self, id: SocketId, interest: Interest) -> bool {
        let Some(socket) = self.sockets.get(&id) else { return true };
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
    fn parked(&mut self, interest: Interest) -> &mut Parked {
        match interest {
            Interest::Read => &mut self.reading,
            Interest::Write => &mut self.writing,
        }
    }
}
