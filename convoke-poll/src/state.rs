//! What a source shares with its driver: its socket, its readiness, and the operations that wait. The driver finds it by the key
//! of an event, and acts for those who wait.

use core::task::Waker;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_exec::raw::SpinLock;
use convoke_io::driver::{
    Address, Finished, InFlight, Interest, OperationId, Parked, Request, RequestMut, StandardSocket,
    Submitted, Ticket, Watchers, shut_down, unsupported,
};

use crate::driver::Shared;
use crate::readiness::{Blocked, Event, Line, Look, Readiness};
use crate::socket::Socket;
use crate::{addresses, calls};

/// A socket, as the driver sees it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) socket: Socket,
    pub(crate) driver: Arc<Shared>,
    key: usize,
    readiness: Readiness,
    /// Held for a few instructions.
    watchers: SpinLock<Directions<Watchers>>,
    /// Held while one of them is performed.
    operations: Mutex<Directions<Parked>>,
    /// Whether the kernel was asked for events.
    added: AtomicBool,
}

/// One for each direction.
#[derive(Debug)]
struct Directions<T> {
    read: T,
    write: T,
}

impl<T> Directions<T> {
    #[inline]
    fn of(&mut self, interest: Interest) -> &mut T {
        match interest {
            Interest::Read => &mut self.read,
            Interest::Write => &mut self.write,
        }
    }
}

impl State {
    pub(crate) fn new(socket: StandardSocket, driver: Arc<Shared>, key: usize) -> Self {
        Self {
            socket: Socket::new(socket),
            driver,
            key,
            readiness: Readiness::new(),
            watchers: SpinLock::new(Directions { read: Watchers::new(), write: Watchers::new() }),
            operations: Mutex::new(Directions { read: Parked::new(), write: Parked::new() }),
            added: AtomicBool::new(false),
        }
    }

    fn operations(&self) -> MutexGuard<'_, Directions<Parked>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the kernel for events.
    pub(crate) fn add(&self) -> io::Result<()> {
        self.driver.poller.add(self.socket.handle(), self.key)?;
        self.added.store(true, Ordering::Release);
        Ok(())
    }

    /// Lets go of the kernel and of the registry, before the socket is closed.
    pub(crate) fn remove(&self) {
        if self.added.load(Ordering::Acquire) {
            self.driver.poller.delete(self.socket.handle());
        }
        let found = self.driver.registry().remove(self.key);
        drop(found);
        self.dismiss(Interest::Read);
        self.dismiss(Interest::Write);
    }

    /// Nobody counts any more who stands in line for a socket that has gone. A future that was forgotten does.
    fn dismiss(&self, interest: Interest) {
        while let Some(waker) = { self.watchers.lock().of(interest).take() } {
            self.driver.has_finished(1);
            drop(Finished::waking(waker));
        }
    }

    /// Does what may block, if an attempt may succeed.
    #[inline]
    pub(crate) fn attempt<T>(
        &self,
        interest: Interest,
        mut act: impl FnMut(&Socket, Look) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            let look = self.readiness.look(interest).map_err(error_of)?;
            match act(&self.socket, look) {
                Err(error) => self.failed(interest, look, error)?,
                done => return done,
            }
        }
    }

    /// An attempt has failed: says so, unless it may be tried again.
    #[cold]
    fn failed(&self, interest: Interest, look: Look, error: io::Error) -> io::Result<()> {
        match error.kind() {
            // If an event came meanwhile it is ready still.
            io::ErrorKind::WouldBlock => self.readiness.would_block(interest, look),
            io::ErrorKind::Interrupted => {}
            _ => return Err(error),
        }
        Ok(())
    }

    /// No byte of a stream is to be transferred, which nobody needs to wait for. A datagram of no length is one.
    #[inline]
    pub(crate) fn asks_for_nothing(&self, length: usize) -> bool {
        length == 0 && calls::is_stream(&self.socket)
    }

    /// So much was read into this much room.
    #[inline]
    pub(crate) fn has_read(&self, read: usize, room: usize, look: Look) {
        // Nothing is left then, and the kernel will say when there is. An end, at zero, stays readable. Only here: a read from a
        // Unix stream also ends where a descriptor is handed over, and datagrams are short as it is.
        if read.wrapping_sub(1) < room.wrapping_sub(1) && matches!(*self.socket, StandardSocket::TcpStream(_))
        {
            self.readiness.fell_short(Interest::Read, look);
        }
    }

    /// So much of so much was written.
    #[inline]
    pub(crate) fn has_written(&self, written: usize, length: usize, look: Look) {
        if written < length {
            self.readiness.fell_short(Interest::Write, look);
        }
    }

    /// What goes well, and that it would block, are said with as few instructions as can be. The rest is out of line, so that
    /// nothing here is called but the kernel.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return self.read_nothing();
        }
        let look = match self.readiness.look(Interest::Read) {
            Ok(look) => look,
            Err(Blocked::NotReady) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(Blocked::Shut) => return after_shut_down(),
        };
        match calls::read(&self.socket, buffer) {
            Ok(read) => {
                self.has_read(read, buffer.len(), look);
                Ok(read)
            }
            Err(error) => self.read_again(look, error, buffer),
        }
    }

    /// A datagram of no length is one; and of any other, nothing is wanted.
    #[cold]
    fn read_nothing(&self) -> io::Result<usize> {
        if self.asks_for_nothing(0) {
            return Ok(0);
        }
        if calls::is_listener(&self.socket) {
            return Err(unsupported("bytes to read from this source"));
        }
        self.attempt(Interest::Read, |socket, _| calls::read(socket, &mut []))
    }

    #[cold]
    fn read_again(&self, look: Look, error: io::Error, buffer: &mut [u8]) -> io::Result<usize> {
        if calls::is_listener(&self.socket) {
            return Err(unsupported("bytes to read from this source"));
        }
        self.failed(Interest::Read, look, error)?;
        self.attempt(Interest::Read, |socket, look| {
            let read = calls::read(socket, buffer)?;
            self.has_read(read, buffer.len(), look);
            Ok(read)
        })
    }

    /// As `read`.
    #[inline]
    pub(crate) fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return self.write_nothing();
        }
        let look = match self.readiness.look(Interest::Write) {
            Ok(look) => look,
            Err(Blocked::NotReady) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(Blocked::Shut) => return after_shut_down(),
        };
        match calls::write(&self.socket, buffer) {
            Ok(written) => {
                self.has_written(written, buffer.len(), look);
                Ok(written)
            }
            Err(error) => self.write_again(look, error, buffer),
        }
    }

    #[cold]
    fn write_nothing(&self) -> io::Result<usize> {
        if self.asks_for_nothing(0) {
            return Ok(0);
        }
        if calls::is_listener(&self.socket) {
            return Err(unsupported("room for bytes in this source"));
        }
        self.attempt(Interest::Write, |socket, _| calls::write(socket, &[]))
    }

    #[cold]
    fn write_again(&self, look: Look, error: io::Error, buffer: &[u8]) -> io::Result<usize> {
        if calls::is_listener(&self.socket) {
            return Err(unsupported("room for bytes in this source"));
        }
        self.failed(Interest::Write, look, error)?;
        self.attempt(Interest::Write, |socket, look| {
            let written = calls::write(socket, buffer)?;
            self.has_written(written, buffer.len(), look);
            Ok(written)
        })
    }

    pub(crate) fn submit(&self, mut operation: InFlight) -> Submitted {
        if let Request::Connect(to) = operation.request()
            && let Some(result) = self.begin_to_connect(to)
        {
            return Submitted::Done(operation, result);
        }
        let interest = operation.request().interest();
        let mut operations = self.operations();
        loop {
            // Nobody overtakes those who came before: they are served when the kernel says so.
            let in_turn = operations.of(interest).is_empty();
            if in_turn && let Some(result) = self.perform(operation.request_mut()) {
                return Submitted::Done(operation, result);
            }
            if self.readiness.may_wait(interest, Line::Operations) || !in_turn {
                break;
            }
        }
        operations.of(interest).push(operation);
        self.driver.has_parked();
        drop(operations);
        self.arm();
        Submitted::Kept
    }

    pub(crate) fn cancel(&self, operation: OperationId) -> Option<InFlight> {
        let mut operations = self.operations();
        let found = operations.read.remove(operation).or_else(|| operations.write.remove(operation))?;
        self.driver.has_finished(1);
        Some(found)
    }

    /// Who waits for one question after the other comes here each time, and mostly his waker is here already.
    #[inline]
    pub(crate) fn watch(&self, interest: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket> {
        let mut watchers = self.watchers.lock();
        if !self.readiness.may_wait(interest, Line::Watchers) {
            return None;
        }
        let Some(watched) = watchers.of(interest).watch_again(ticket, waker) else {
            drop(watchers);
            return self.watch_anew(interest, ticket, waker);
        };
        if watched.is_new {
            self.driver.has_parked();
        }
        drop(watchers);
        self.arm();
        Some(watched.ticket)
    }

    #[cold]
    #[inline(never)]
    fn watch_anew(&self, interest: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket> {
        // Foreign code, a waker's, runs without the lock.
        let waker = waker.clone();
        let mut watchers = self.watchers.lock();
        if !self.readiness.may_wait(interest, Line::Watchers) {
            return None;
        }
        let watched = watchers.of(interest).watch(ticket, waker);
        if watched.is_new {
            self.driver.has_parked();
        }
        drop(watchers);
        drop(watched.before);
        self.arm();
        Some(watched.ticket)
    }

    #[inline]
    pub(crate) fn watch_untried(&self, interest: Interest, waker: &Waker) -> Option<Ticket> {
        if self.readiness.is_known_to_block(interest) {
            self.watch(interest, Ticket::NONE, waker)
        } else {
            None
        }
    }

    pub(crate) fn unwatch(&self, interest: Interest, ticket: Ticket) {
        let found = self.watchers.lock().of(interest).unwatch(ticket);
        if found.is_some() {
            self.driver.has_finished(1);
        }
    }

    /// An event of the kernel. What is finished by it goes to the others that are, to be told later; said is how many were told at
    /// once.
    #[inline]
    pub(crate) fn happened(&self, event: Event, finished: &mut Vec<Finished>) -> usize {
        let lines = self.readiness.happened(event);
        if lines.has(Line::Operations) {
            self.serve_operations(event, finished);
        }
        let mut told = 0;
        if lines.has(Line::Watchers) {
            let mut watchers = self.watchers.lock();
            if event.says(Event::READABLE) {
                told += wake(&mut watchers.read, finished);
            }
            if event.says(Event::WRITABLE) {
                told += wake(&mut watchers.write, finished);
            }
        }
        self.arm();
        told
    }

    #[cold]
    fn serve_operations(&self, event: Event, finished: &mut Vec<Finished>) {
        let mut operations = self.operations();
        if event.says(Event::READABLE) {
            self.perform_parked(&mut operations.read, finished);
        }
        if event.says(Event::WRITABLE) {
            self.perform_parked(&mut operations.write, finished);
        }
    }

    /// Finishes those that can be finished, the first in line first.
    fn perform_parked(&self, parked: &mut Parked, finished: &mut Vec<Finished>) {
        while let Some(mut operation) = parked.pop() {
            match self.perform(operation.request_mut()) {
                Some(result) => finished.push(operation.finish(result)),
                None => return parked.put_back(operation),
            }
        }
    }

    /// Finishes all, for the driver shuts down.
    pub(crate) fn shut(&self, finished: &mut Vec<Finished>) {
        self.readiness.shut();
        let mut operations = self.operations();
        for interest in [Interest::Read, Interest::Write] {
            while let Some(operation) = operations.of(interest).pop() {
                finished.push(operation.finish(Err(shut_down())));
            }
            wake_later(self.watchers.lock().of(interest), finished);
        }
    }

    /// Does what is asked for, or says nothing if it would block.
    fn perform(&self, request: RequestMut<'_>) -> Option<io::Result<usize>> {
        let result = match request {
            RequestMut::Read(buffer) => self.read(buffer),
            RequestMut::Write(buffer) => self.write(buffer),
            RequestMut::Connect(_) => self.attempt(Interest::Write, |socket, _| has_connected(socket)),
            _ => Err(unsupported("such operations")),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            result => Some(result),
        }
    }

    /// Says nothing if it takes time.
    fn begin_to_connect(&self, to: &Address) -> Option<io::Result<usize>> {
        let connected = addresses::to_any(to).and_then(|to| calls::reference(&self.socket).connect(&to));
        let takes_time = match connected {
            Ok(()) => false,
            Err(error) if is_in_progress(&error) => true,
            Err(error) => return Some(Err(error)),
        };
        if self.added.load(Ordering::Acquire) {
            return if takes_time { None } else { Some(Ok(0)) };
        }
        // Only now: the kernel says of a stream that was never connected that it has hung up.
        if takes_time {
            self.readiness.reset();
        }
        match self.add() {
            Err(error) => Some(Err(error)),
            Ok(()) if takes_time => None,
            Ok(()) => Some(Ok(0)),
        }
    }

    /// Where events do not come by themselves, asks for one, in the directions that somebody waits for. Called after each that
    /// begins to wait, and after each event.
    #[inline]
    fn arm(&self) {
        if !self.driver.poller.has_edges() {
            self.ask_for_event();
        }
    }

    #[cold]
    fn ask_for_event(&self) {
        // Held meanwhile: of two who ask, the second asks for what both wait for.
        let operations = self.operations();
        let watchers = self.watchers.lock();
        let read = !operations.read.is_empty() || !watchers.read.is_empty();
        let write = !operations.write.is_empty() || !watchers.write.is_empty();
        drop(watchers);
        if read || write {
            self.driver.poller.arm(self.socket.handle(), self.key, read, write);
        }
    }
}

/// Those who wait try again. Says how many were told at once: tasks of this very thread, which are merely queued.
#[inline]
fn wake(watchers: &mut Watchers, finished: &mut Vec<Finished>) -> usize {
    if watchers.is_empty() { 0 } else { wake_some(watchers, finished) }
}

/// Out of line: there are two directions, and mostly somebody waits in one of them.
#[inline(never)]
fn wake_some(watchers: &mut Watchers, finished: &mut Vec<Finished>) -> usize {
    if !watchers.wake_first_at_home() {
        return wake_rest(watchers, finished, 0);
    }
    if watchers.is_empty() { 1 } else { wake_rest(watchers, finished, 1) }
}

#[cold]
#[inline(never)]
fn wake_rest(watchers: &mut Watchers, finished: &mut Vec<Finished>, told: usize) -> usize {
    wake_later(watchers, finished);
    told
}

fn wake_later(watchers: &mut Watchers, finished: &mut Vec<Finished>) {
    while let Some(waker) = watchers.take() {
        finished.push(Finished::waking(waker));
    }
}

#[inline]
fn error_of(blocked: Blocked) -> io::Error {
    match blocked {
        Blocked::NotReady => io::ErrorKind::WouldBlock.into(),
        Blocked::Shut => shut_down(),
    }
}

#[cold]
#[inline(never)]
fn after_shut_down() -> io::Result<usize> {
    Err(shut_down())
}

/// Whether a connection was made, after the kernel has said that something has happened.
fn has_connected(socket: &StandardSocket) -> io::Result<usize> {
    let socket = calls::reference(socket);
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    match socket.peer_addr() {
        Ok(_) => Ok(0),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn is_in_progress(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::INPROGRESS | Errno::INTR))
}

#[cfg(windows)]
fn is_in_progress(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
