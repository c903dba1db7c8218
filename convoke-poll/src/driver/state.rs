//! `SourceState`: the part of a source that the driver uses: its socket, its readiness and its waiting lists. The
//! driver finds it by the key of an event and serves the waiters.
//!
//! Locks are taken in this order: the registry, the operations of a source, its `waiting` lock. No code of
//! the program runs under any of them.

use core::task::Waker;
use std::io;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{DropOutOfLine, LastUse, OutOfLine, SpinLock};
use convoke_io::driver::{
    Address, Finished, InFlight, Interest, OperationId, Parked, Request, RequestMut, StandardSocket,
    Submitted, Ticket, Watchers, shut_down, unsupported,
};

use super::SharedDriver;
use crate::readiness::{Event, Line, Readiness};
use crate::socket::Socket;
use crate::{calls, options};

/// A socket, as the driver uses it. There are many, so parts that few of them need are allocated on first
/// use.
pub(crate) struct SourceState {
    pub(crate) socket: Socket,
    pub(crate) driver: Arc<SharedDriver>,
    key: u32,
    pub(crate) readiness: Readiness,
    /// A spin lock, held for a few instructions.
    waiting: SpinLock<OutOfLine<WaitingLists>>,
}

/// The waiting lists of a source: watchers, which try again themselves, and operations.
#[derive(Default)]
struct WaitingLists {
    read: Watchers,
    /// Boxed: few sockets ever wait to write.
    write: Option<Box<Watchers>>,
    operations: Option<Arc<Operations>>,
}

impl DropOutOfLine for WaitingLists {
    #[inline(never)]
    fn drop_out_of_line(lists: LastUse<'_, Self>) {
        lists.drop_here();
    }
}

/// The operations of a source, and what only few sources need to know.
#[derive(Default)]
struct Operations {
    /// The lock is held while an operation is performed.
    parked: Mutex<Directions<Parked>>,
    /// The number of the system's error if the kernel refused to report events: then the source is shut.
    refused: AtomicI32,
    /// True if there is a second handle of the socket.
    is_duplicated: AtomicBool,
}

/// A value for each direction.
#[derive(Default)]
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

impl WaitingLists {
    /// Returns the list for a new watcher, and creates it if there is none.
    #[inline]
    fn of(&mut self, interest: Interest) -> &mut Watchers {
        match interest {
            Interest::Read => &mut self.read,
            Interest::Write => self.write.get_or_insert_default(),
        }
    }

    /// Returns the list, if there was ever a watcher.
    #[inline]
    fn existing(&mut self, interest: Interest) -> Option<&mut Watchers> {
        match interest {
            Interest::Read => Some(&mut self.read),
            Interest::Write => self.write.as_deref_mut(),
        }
    }
}

impl SourceState {
    pub(crate) fn new(socket: StandardSocket, driver: Arc<SharedDriver>, key: u32) -> Self {
        Self {
            socket: Socket::new(socket),
            driver,
            key,
            readiness: Readiness::new(),
            waiting: SpinLock::new(OutOfLine::new(WaitingLists::default())),
        }
    }

    /// Returns the lists of operations, and creates them if there are none.
    fn operations(&self) -> Arc<Operations> {
        self.waiting.lock().operations.get_or_insert_default().clone()
    }

    /// Returns the lists of operations, if there was ever one.
    fn existing_operations(&self) -> Option<Arc<Operations>> {
        self.waiting.lock().operations.clone()
    }

    /// Registers the socket with the kernel, to get events.
    pub(crate) fn add(&self) -> io::Result<()> {
        self.driver.poller.add(self.socket.handle(), self.key as usize)?;
        self.readiness.set_added();
        Ok(())
    }

    /// Removes the socket from the registry and from the kernel, before it is closed.
    pub(crate) fn remove(&self) {
        // The registry first: while the source is in it, the driver may handle an event and request the next
        // one, for a socket that the kernel does not know any more.
        self.driver.registry().remove(self.key);
        if self.readiness.is_added() {
            self.driver.poller.delete(self.socket.handle());
        }
        self.remove_watchers(Interest::Read);
        self.remove_watchers(Interest::Write);
        // Closing one of two handles does not block, and options belong to both.
        let lines = self.existing_operations();
        if !lines.is_some_and(|lines| lines.is_duplicated.load(Ordering::Acquire)) {
            options::clear_linger(&self.socket);
        }
    }

    /// Duplicates the handle of the socket.
    pub(crate) fn duplicate(&self) -> io::Result<StandardSocket> {
        let duplicate = calls::duplicate(&self.socket)?;
        self.operations().is_duplicated.store(true, Ordering::Release);
        Ok(duplicate)
    }

    /// Removes the watchers of a socket that is being dropped, so that they are not counted any more. Only
    /// futures that were leaked can leave some.
    fn remove_watchers(&self, interest: Interest) {
        while let Some(waker) = { self.waiting.lock().existing(interest).and_then(Watchers::take) } {
            self.driver.count_finished(1);
            drop(Finished::waking(waker));
        }
    }

    pub(crate) fn submit(&self, mut operation: InFlight) -> Submitted {
        if let Request::Connect(to) = operation.request()
            && let Some(result) = self.start_connect(to)
        {
            return Submitted::Done(operation, result);
        }
        let interest = operation.request().interest();
        let lines = self.operations();
        let mut operations = lock(&lines);
        loop {
            // Operations are performed in order: one that finds others parked waits behind them.
            let in_turn = operations.of(interest).is_empty();
            if in_turn && let Some(result) = self.perform(operation.request_mut()) {
                return Submitted::Done(operation, result);
            }
            if self.readiness.may_wait(interest, Line::Operations) || !in_turn {
                break;
            }
        }
        operations.of(interest).push(operation);
        self.driver.count_parked();
        drop(operations);
        self.arm_and_tell();
        Submitted::Kept
    }

    pub(crate) fn cancel(&self, operation: OperationId) -> Option<InFlight> {
        let lines = self.existing_operations()?;
        let mut operations = lock(&lines);
        let found = operations.read.remove(operation).or_else(|| operations.write.remove(operation))?;
        self.driver.count_finished(1);
        Some(found)
    }

    /// Registers a watcher. The same task comes here for one request after the other, so mostly its waker is
    /// cached.
    #[inline]
    pub(crate) fn watch(&self, interest: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket> {
        let mut waiting = self.waiting.lock();
        if !self.readiness.may_wait(interest, Line::Watchers) {
            return None;
        }
        let Some(watched) = waiting.of(interest).watch_again(ticket, waker) else {
            drop(waiting);
            return self.watch_new(interest, ticket, waker);
        };
        if watched.is_new {
            self.driver.count_parked();
        }
        drop(waiting);
        self.arm_and_tell();
        Some(watched.ticket)
    }

    #[cold]
    #[inline(never)]
    fn watch_new(&self, interest: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket> {
        // Cloning a waker runs foreign code, so it is done without the lock.
        let waker = waker.clone();
        let mut waiting = self.waiting.lock();
        if !self.readiness.may_wait(interest, Line::Watchers) {
            return None;
        }
        let watched = waiting.of(interest).watch(ticket, waker);
        if watched.is_new {
            self.driver.count_parked();
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
        let found = self.waiting.lock().existing(interest).and_then(|line| line.unwatch(ticket));
        if found.is_some() {
            self.driver.count_finished(1);
        }
    }

    /// Handles an event of the kernel. Pushes the notifications to `finished`, to be delivered later. Returns
    /// the number of tasks that were woken at once.
    #[inline]
    pub(crate) fn handle_event(&self, event: Event, finished: &mut Vec<Finished>) -> usize {
        let lines = self.readiness.happened(event);
        if lines.has(Line::Operations) {
            self.serve_operations(event, finished);
        }
        let mut woken = 0;
        if lines.has(Line::Watchers) {
            let mut waiting = self.waiting.lock();
            if event.says(Event::READABLE) {
                woken += wake(&mut waiting.read, finished);
            }
            if event.says(Event::WRITABLE)
                && let Some(line) = &mut waiting.write
            {
                woken += wake(line, finished);
            }
        }
        self.arm(finished);
        woken
    }

    #[cold]
    fn serve_operations(&self, event: Event, finished: &mut Vec<Finished>) {
        let Some(lines) = self.existing_operations() else { return };
        let mut operations = lock(&lines);
        if event.says(Event::READABLE) {
            self.perform_parked(&mut operations.read, finished);
        }
        if event.says(Event::WRITABLE) {
            self.perform_parked(&mut operations.write, finished);
        }
    }

    /// Performs parked operations in order, until one would block.
    fn perform_parked(&self, parked: &mut Parked, finished: &mut Vec<Finished>) {
        while let Some(mut operation) = parked.pop() {
            match self.perform(operation.request_mut()) {
                Some(result) => finished.push(operation.finish(result)),
                None => return parked.put_back(operation),
            }
        }
    }

    /// Finishes all operations and wakes all watchers: the driver shuts down, or the kernel refused to report events.
    pub(crate) fn shut(&self, finished: &mut Vec<Finished>) {
        self.readiness.shut();
        let lines = self.existing_operations();
        let mut operations = lines.as_deref().map(lock);
        for interest in [Interest::Read, Interest::Write] {
            while let Some(operation) = operations.as_mut().and_then(|lines| lines.of(interest).pop()) {
                finished.push(operation.finish(Err(self.why_shut())));
            }
            if let Some(line) = self.waiting.lock().existing(interest) {
                wake_later(line, finished);
            }
        }
    }

    /// Performs a request. Returns `None` if it would block.
    fn perform(&self, request: RequestMut<'_>) -> Option<io::Result<usize>> {
        let result = match request {
            RequestMut::Read(buffer) => self.read(buffer),
            RequestMut::Write(buffer) => self.write(buffer),
            RequestMut::Connect(_) => self.attempt(Interest::Write, |socket, _| check_connected(socket)),
            _ => Err(unsupported("such operations")),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            result => Some(result),
        }
    }

    /// Starts to connect. Returns `None` if that takes time.
    fn start_connect(&self, to: &Address) -> Option<io::Result<usize>> {
        // A connection that is made now would outlive the driver.
        if self.readiness.is_shut() {
            return Some(Err(self.why_shut()));
        }
        let takes_time = match calls::start_connect(&self.socket, to) {
            Ok(takes_time) => takes_time,
            Err(error) => return Some(Err(error)),
        };
        if self.readiness.is_added() {
            return if takes_time { None } else { Some(Ok(0)) };
        }
        // Registered only now: the kernel reports a hang-up for a stream that was never connected.
        if takes_time {
            self.readiness.reset();
        }
        match self.add() {
            Err(error) => Some(Err(error)),
            Ok(()) if takes_time => None,
            Ok(()) => Some(Ok(0)),
        }
    }

    /// Requests an event for the directions with waiters, if events are not edge-triggered. Called after each
    /// new waiter and after each event.
    #[inline]
    fn arm(&self, finished: &mut Vec<Finished>) {
        if !self.driver.poller.has_edges()
            && let Err(error) = self.request_event()
        {
            self.operations().refused.store(error.raw_os_error().unwrap_or(UNKNOWN), Ordering::Release);
            self.shut(finished);
        }
    }

    /// Requests an event for a new waiter, and counts what fails by it.
    #[inline]
    fn arm_and_tell(&self) {
        if !self.driver.poller.has_edges() {
            let mut finished = Vec::new();
            self.arm(&mut finished);
            if !finished.is_empty() {
                self.driver.count_finished(finished.len());
            }
        }
    }

    /// Returns the error of every call after the source was shut.
    pub(crate) fn why_shut(&self) -> io::Error {
        let known = self.existing_operations();
        match known.map_or(0, |operations| operations.refused.load(Ordering::Acquire)) {
            0 => shut_down(),
            UNKNOWN => io::Error::other("the system refused to report events of this socket"),
            number => io::Error::from_raw_os_error(number),
        }
    }

    #[cold]
    fn request_event(&self) -> io::Result<()> {
        // The locks are held during the request: the second of two threads requests the directions of both.
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
    operations.parked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes the watchers. Returns the number that was woken at once: tasks of this thread, which are merely
/// queued.
#[inline]
fn wake(watchers: &mut Watchers, finished: &mut Vec<Finished>) -> usize {
    if watchers.is_empty() { 0 } else { wake_some(watchers, finished) }
}

// Out of line: `wake` is inlined for two directions, and mostly only one has a watcher.
#[inline(never)]
fn wake_some(watchers: &mut Watchers, finished: &mut Vec<Finished>) -> usize {
    if !watchers.wake_first_locally() {
        return wake_rest(watchers, finished, 0);
    }
    if watchers.is_empty() { 1 } else { wake_rest(watchers, finished, 1) }
}

#[cold]
#[inline(never)]
fn wake_rest(watchers: &mut Watchers, finished: &mut Vec<Finished>, woken: usize) -> usize {
    wake_later(watchers, finished);
    woken
}

fn wake_later(watchers: &mut Watchers, finished: &mut Vec<Finished>) {
    while let Some(waker) = watchers.take() {
        finished.push(Finished::waking(waker));
    }
}

/// Checks whether a connection was made, after an event.
fn check_connected(socket: &StandardSocket) -> io::Result<usize> {
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
