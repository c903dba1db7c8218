//! What a source shares with its driver: its socket, its readiness, and the operations that wait. The driver finds it by the key
//! of an event, and acts for those who wait.

use core::task::Waker;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::atomic::{AtomicI32, Ordering};
use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_exec::raw::SpinLock;
use convoke_io::driver::{
    Address, Finished, InFlight, Interest, OperationId, Parked, Request, RequestMut, StandardSocket,
    Submitted, Ticket, Watchers, shut_down, unsupported,
};

use crate::calls;
use crate::driver::Shared;
use crate::readiness::{Event, Line, Readiness};
use crate::socket::Socket;

/// A socket, as the driver sees it. There are many: what few of them need is made when it is first needed.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) socket: Socket,
    pub(crate) driver: Arc<Shared>,
    key: u32,
    pub(crate) readiness: Readiness,
    /// Held for a few instructions.
    waiting: SpinLock<WhoWaits>,
}

/// Those who try again by themselves, and the operations.
#[derive(Debug, Default)]
struct WhoWaits {
    read: Watchers,
    /// Few ever wait for room to write.
    write: Option<Box<Watchers>>,
    operations: Option<Arc<Operations>>,
}

/// Those that the driver performs; also where few ever look.
#[derive(Debug, Default)]
struct Operations {
    /// Held while one of them is performed.
    lines: Mutex<Directions<Parked>>,
    /// The number of the system's error, if the kernel has refused to tell of events: then the source is shut.
    refused: AtomicI32,
}

/// One for each direction.
#[derive(Debug, Default)]
struct Directions<T> {
    read: T,
    write: T,
}

impl<T> Directions<T> {
    fn of(&mut self, interest: Interest) -> &mut T {
        match interest {
            Interest::Read => &mut self.read,
            Interest::Write => &mut self.write,
        }
    }
}

impl WhoWaits {
    /// The line for one who begins to wait.
    #[inline]
    fn of(&mut self, interest: Interest) -> &mut Watchers {
        match interest {
            Interest::Read => &mut self.read,
            Interest::Write => self.write.get_or_insert_default(),
        }
    }

    /// The line, if anybody has ever stood there.
    #[inline]
    fn known(&mut self, interest: Interest) -> Option<&mut Watchers> {
        match interest {
            Interest::Read => Some(&mut self.read),
            Interest::Write => self.write.as_deref_mut(),
        }
    }
}

impl State {
    pub(crate) fn new(socket: StandardSocket, driver: Arc<Shared>, key: u32) -> Self {
        Self {
            socket: Socket::new(socket),
            driver,
            key,
            readiness: Readiness::new(),
            waiting: SpinLock::new(WhoWaits::default()),
        }
    }

    /// The lines of operations, made now if there are none.
    fn operations(&self) -> Arc<Operations> {
        self.waiting.lock().operations.get_or_insert_default().clone()
    }

    /// The lines of operations, if anybody has ever stood there.
    fn known_operations(&self) -> Option<Arc<Operations>> {
        self.waiting.lock().operations.clone()
    }

    /// Asks the kernel for events.
    pub(crate) fn add(&self) -> io::Result<()> {
        self.driver.poller.add(self.socket.handle(), self.key as usize)?;
        self.readiness.set_added();
        Ok(())
    }

    /// Lets go of the kernel and of the registry, before the socket is closed.
    pub(crate) fn remove(&self) {
        // First: an event that the driver has in its hands would be answered by asking the kernel for the next one, of a socket that
        // it does not know any more.
        self.driver.registry().remove(self.key);
        if self.readiness.is_added() {
            self.driver.poller.delete(self.socket.handle());
        }
        self.dismiss(Interest::Read);
        self.dismiss(Interest::Write);
    }

    /// Nobody counts any more who stands in line for a socket that has gone. A future that was forgotten does.
    fn dismiss(&self, interest: Interest) {
        while let Some(waker) = { self.waiting.lock().known(interest).and_then(Watchers::take) } {
            self.driver.has_finished(1);
            drop(Finished::waking(waker));
        }
    }

    pub(crate) fn submit(&self, mut operation: InFlight) -> Submitted {
        if let Request::Connect(to) = operation.request()
            && let Some(result) = self.begin_to_connect(to)
        {
            return Submitted::Done(operation, result);
        }
        let interest = operation.request().interest();
        let lines = self.operations();
        let mut operations = lock(&lines);
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
        self.arm_and_tell();
        Submitted::Kept
    }

    pub(crate) fn cancel(&self, operation: OperationId) -> Option<InFlight> {
        let lines = self.known_operations()?;
        let mut operations = lock(&lines);
        let found = operations.read.remove(operation).or_else(|| operations.write.remove(operation))?;
        self.driver.has_finished(1);
        Some(found)
    }

    /// Who waits for one question after the other comes here each time, and mostly his waker is here already.
    #[inline]
    pub(crate) fn watch(&self, interest: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket> {
        let mut waiting = self.waiting.lock();
        if !self.readiness.may_wait(interest, Line::Watchers) {
            return None;
        }
        let Some(watched) = waiting.of(interest).watch_again(ticket, waker) else {
            drop(waiting);
            return self.watch_anew(interest, ticket, waker);
        };
        if watched.is_new {
            self.driver.has_parked();
        }
        drop(waiting);
        self.arm_and_tell();
        Some(watched.ticket)
    }

    #[cold]
    #[inline(never)]
    fn watch_anew(&self, interest: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket> {
        // Foreign code, a waker's, runs without the lock.
        let waker = waker.clone();
        let mut waiting = self.waiting.lock();
        if !self.readiness.may_wait(interest, Line::Watchers) {
            return None;
        }
        let watched = waiting.of(interest).watch(ticket, waker);
        if watched.is_new {
            self.driver.has_parked();
        }
        drop(waiting);
        drop(watched.before);
        self.arm_and_tell();
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
        let found = self.waiting.lock().known(interest).and_then(|line| line.unwatch(ticket));
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
            let mut waiting = self.waiting.lock();
            if event.says(Event::READABLE) {
                told += wake(&mut waiting.read, finished);
            }
            if event.says(Event::WRITABLE)
                && let Some(line) = &mut waiting.write
            {
                told += wake(line, finished);
            }
        }
        self.arm(finished);
        told
    }

    #[cold]
    fn serve_operations(&self, event: Event, finished: &mut Vec<Finished>) {
        let Some(lines) = self.known_operations() else { return };
        let mut operations = lock(&lines);
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

    /// Finishes all, for the driver shuts down, or the kernel has refused to tell of events.
    pub(crate) fn shut(&self, finished: &mut Vec<Finished>) {
        self.readiness.shut();
        let lines = self.known_operations();
        let mut operations = lines.as_deref().map(lock);
        for interest in [Interest::Read, Interest::Write] {
            while let Some(operation) = operations.as_mut().and_then(|lines| lines.of(interest).pop()) {
                finished.push(operation.finish(Err(self.why_shut())));
            }
            if let Some(line) = self.waiting.lock().known(interest) {
                wake_later(line, finished);
            }
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
        // What is made now would go on without the driver.
        if self.readiness.is_shut() {
            return Some(Err(self.why_shut()));
        }
        let takes_time = match calls::begin_to_connect(&self.socket, to) {
            Ok(takes_time) => takes_time,
            Err(error) => return Some(Err(error)),
        };
        if self.readiness.is_added() {
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
    fn arm(&self, finished: &mut Vec<Finished>) {
        if !self.driver.poller.has_edges()
            && let Err(error) = self.ask_for_event()
        {
            self.operations().refused.store(error.raw_os_error().unwrap_or(UNKNOWN), Ordering::Release);
            self.shut(finished);
        }
    }

    /// The same, for one who begins to wait.
    #[inline]
    fn arm_and_tell(&self) {
        if !self.driver.poller.has_edges() {
            let mut finished = Vec::new();
            self.arm(&mut finished);
            if !finished.is_empty() {
                self.driver.has_finished(finished.len());
            }
        }
    }

    /// The error of all that is asked for after it was shut.
    pub(crate) fn why_shut(&self) -> io::Error {
        let known = self.known_operations();
        match known.map_or(0, |operations| operations.refused.load(Ordering::Acquire)) {
            0 => shut_down(),
            UNKNOWN => io::Error::other("the system does not tell of events of this socket"),
            number => io::Error::from_raw_os_error(number),
        }
    }

    #[cold]
    fn ask_for_event(&self) -> io::Result<()> {
        // Held meanwhile: of two who ask, the second asks for what both wait for.
        let lines = self.operations();
        let operations = lock(&lines);
        let waiting = self.waiting.lock();
        let read = !operations.read.is_empty() || !waiting.read.is_empty();
        let write =
            !operations.write.is_empty() || waiting.write.as_deref().is_some_and(|line| !line.is_empty());
        drop(waiting);
        if !(read || write) || self.readiness.is_shut() {
            return Ok(());
        }
        self.driver.poller.arm(self.socket.handle(), self.key as usize, read, write)
    }
}

/// Stands for an error without a number.
const UNKNOWN: i32 = i32::MIN;

fn lock(operations: &Operations) -> MutexGuard<'_, Directions<Parked>> {
    operations.lines.lock().unwrap_or_else(PoisonError::into_inner)
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
