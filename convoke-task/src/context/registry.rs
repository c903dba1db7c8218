//! The services of a context: which there are, which are being made and by which thread, and the order of
//! their end.

use core::any::{Any, TypeId};
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::thread::{self, ThreadId};
use convoke_core::raw::sync::{Condvar, Mutex, MutexGuard};
use convoke_core::raw::{DropOutOfLine, LastUse};

use super::{Service, ServiceError};
use crate::cleanup::reported;

/// The services of a context. No lock is held while a service is made, shut down or destroyed.
pub(super) struct Registry {
    state: Mutex<RegistryState>,
    /// Notified whenever a service has been made, or failed to be.
    changed: Condvar,
}

#[derive(Default)]
struct RegistryState {
    /// The services, in the order of their addition.
    ready: Vec<Entry>,
    /// Threads that make a service.
    making: Vec<Turn>,
    /// Threads that wait for a service that another thread makes.
    waiting: Vec<Turn>,
    /// Set when the end has begun: the number of `ready` that were told neither to close nor to shut down,
    /// counted from the front.
    to_end: Option<usize>,
    /// Services that were told to close and are to be shut down after that, the last made first. One, unless
    /// a close was cut short.
    closing: Vec<Last>,
}

/// A thread, and the service that it makes or waits for.
struct Turn {
    thread: ThreadId,
    key: TypeId,
}

/// The type of an interface, by which its service is found.
#[derive(Clone, Copy)]
struct Interface {
    key: TypeId,
    name: &'static str,
}

impl Interface {
    fn of<I: ?Sized + 'static>() -> Self {
        Self { key: TypeId::of::<I>(), name: core::any::type_name::<I>() }
    }
}

/// A service under its key.
pub(super) struct Entry {
    key: TypeId,
    /// An `Arc` of the interface that the key is the type of.
    interface: Box<dyn Any + Send + Sync>,
    service: Arc<dyn ShutDown>,
    /// The name of its type, for reports.
    pub(super) name: &'static str,
    /// The line that asked for it when it was made.
    pub(super) location: &'static Location<'static>,
}

/// The close of a service, which is awaited.
type Closing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The methods of every service, whatever its interface.
trait ShutDown: Send + Sync {
    fn close(self: Arc<Self>) -> Closing;
    fn shutdown(&self);
}

impl<S: Service> ShutDown for S {
    fn close(self: Arc<Self>) -> Closing {
        Box::pin(async move { Service::close(&*self).await })
    }

    fn shutdown(&self) {
        Service::shutdown(self);
    }
}

impl Entry {
    pub(super) fn new<S: Service>(
        service: S,
        location: &'static Location<'static>,
    ) -> (Self, Arc<S::Interface>) {
        let service = Arc::new(service);
        let interface = service.clone().into_interface();
        let key = TypeId::of::<S::Interface>();
        let name = core::any::type_name::<S>();
        (Self { key, interface: Box::new(interface.clone()), service, name, location }, interface)
    }
}

/// A service whose turn it is to end.
#[derive(Clone)]
pub(super) struct Last {
    service: Arc<dyn ShutDown>,
    pub(super) name: &'static str,
    pub(super) location: &'static Location<'static>,
}

impl Last {
    pub(super) fn close(&self) -> Closing {
        Arc::clone(&self.service).close()
    }

    pub(super) fn shutdown(&self) {
        self.service.shutdown();
    }

    /// Shuts it down, and reports a panic.
    pub(super) async fn shut_down_reported(&self) {
        reported(self.name, self.location, Box::pin(async { self.shutdown() })).await;
    }
}

/// The result of a request for a service.
pub(super) enum Lookup<'r, I: ?Sized> {
    /// The service.
    Found(Arc<I>),
    /// There is none: the caller makes it.
    Make(Permit<'r>),
}

impl DropOutOfLine for Registry {
    #[inline(never)]
    fn drop_out_of_line(registry: LastUse<'_, Self>) {
        registry.drop_here();
    }
}

impl Registry {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the service of this interface, if there is one.
    pub(super) fn find<I: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<I>> {
        self.state().find()
    }

    /// Returns the service, or a permit to make it. Waits if another thread is making it.
    pub(super) fn find_or_make<I: ?Sized + Send + Sync + 'static>(
        &self,
    ) -> Result<Lookup<'_, I>, ServiceError> {
        match self.find_or_permit(Interface::of::<I>())? {
            Ok(state) => Ok(Lookup::Found(state.find().expect("the service was found under this lock"))),
            Err(permit) => Ok(Lookup::Make(permit)),
        }
    }

    /// Returns the state with the service in it, or a permit to make it. Without its type, so that this is compiled
    /// once.
    fn find_or_permit(
        &self,
        interface: Interface,
    ) -> Result<Result<MutexGuard<'_, RegistryState>, Permit<'_>>, ServiceError> {
        let me = Turn { thread: thread::current().id(), key: interface.key };
        let mut state = self.state();
        loop {
            if state.entry(me.key).is_some() {
                return Ok(Ok(state));
            }
            if state.maker(me.key).is_none() {
                return self.permit(state, interface).map(Err);
            }
            if state.would_wait_for_itself(&me) {
                return Err(ServiceError::Cyclic(interface.name));
            }
            state.waiting.push(Turn { ..me });
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting.retain(|turn| turn.thread != me.thread);
        }
    }

    /// Returns a permit to make the service, if there is none and no thread makes one.
    pub(super) fn make<I: ?Sized + Send + Sync + 'static>(&self) -> Result<Permit<'_>, ServiceError> {
        let interface = Interface::of::<I>();
        let state = self.state();
        if state.entry(interface.key).is_some() || state.maker(interface.key).is_some() {
            return Err(ServiceError::Duplicate(interface.name));
        }
        self.permit(state, interface)
    }

    fn permit(
        &self,
        mut state: MutexGuard<'_, RegistryState>,
        interface: Interface,
    ) -> Result<Permit<'_>, ServiceError> {
        if state.to_end.is_some() {
            return Err(ServiceError::ShutDown(interface.name));
        }
        state.making.push(Turn { thread: thread::current().id(), key: interface.key });
        Ok(Permit { registry: self, interface })
    }

    /// Returns the next service to close, the last one first. No service is added any more. When it has
    /// closed, [`has_closed`](Self::has_closed) says if the caller must shut it down.
    pub(super) fn next_to_close(&self) -> Option<Last> {
        let mut state = self.state();
        let last = state.next_to_end()?;
        state.closing.push(last.clone());
        Some(last)
    }

    /// Takes note that a service has closed. Returns true if it was not shut down meanwhile: then the caller
    /// does that.
    pub(super) fn has_closed(&self, closed: &Last) -> bool {
        let mut state = self.state();
        let found = state.closing.iter().position(|last| Arc::ptr_eq(&last.service, &closed.service));
        found.map(|index| state.closing.remove(index)).is_some()
    }

    /// Returns the next service to shut down, the last one first, also if it is closing. No service is added
    /// any more.
    pub(super) fn next_to_shut_down(&self) -> Option<Last> {
        let mut state = self.state();
        if state.closing.is_empty() { state.next_to_end() } else { Some(state.closing.remove(0)) }
    }

    /// Removes the last service, to be destroyed.
    pub(super) fn take_last(&self) -> Option<Entry> {
        self.state().ready.pop()
    }

    pub(super) fn len(&self) -> usize {
        self.state().ready.len()
    }
}

impl RegistryState {
    fn next_to_end(&mut self) -> Option<Last> {
        let all = self.ready.len();
        let left = self.to_end.get_or_insert(all);
        *left = left.checked_sub(1)?;
        let entry = &self.ready[*left];
        Some(Last { service: Arc::clone(&entry.service), name: entry.name, location: entry.location })
    }

    fn find<I: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<I>> {
        self.entry(TypeId::of::<I>())?.interface.downcast_ref::<Arc<I>>().cloned()
    }

    fn entry(&self, key: TypeId) -> Option<&Entry> {
        self.ready.iter().find(|entry| entry.key == key)
    }

    fn maker(&self, key: TypeId) -> Option<ThreadId> {
        self.making.iter().find(|turn| turn.key == key).map(|turn| turn.thread)
    }

    /// Returns true if the thread that makes what `me` wants is `me`, or waits, directly or through others,
    /// for what `me` makes.
    fn would_wait_for_itself(&self, me: &Turn) -> bool {
        let mut key = me.key;
        while let Some(maker) = self.maker(key) {
            if maker == me.thread {
                return true;
            }
            let Some(next) = self.waiting.iter().find(|turn| turn.thread == maker) else { return false };
            key = next.key;
        }
        false
    }
}

/// A permit to make one service. If it is dropped unused, for instance by a panic, the next thread may try.
#[must_use]
pub(super) struct Permit<'r> {
    registry: &'r Registry,
    interface: Interface,
}

impl Permit<'_> {
    /// Adds the service that was made. It is refused, and destroyed, if the context was shut down in the
    /// meantime.
    pub(super) fn add(self, entry: Entry) -> Result<(), ServiceError> {
        let mut state = self.registry.state();
        if state.to_end.is_some() {
            // Its destructor is code of the program: not under the lock.
            drop(state);
            drop(entry);
            return Err(ServiceError::ShutDown(self.interface.name));
        }
        state.ready.push(entry);
        Ok(())
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.registry.state().making.retain(|turn| turn.key != self.interface.key);
        self.registry.changed.notify_all();
    }
}
