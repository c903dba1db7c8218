//! `Context`: typed services, made when they are first asked for and ended in order. The books are kept in `registry`.

mod error;
mod registry;
mod service;

pub use error::ServiceError;
pub use service::{FromContext, Service};

use core::fmt;
use core::panic::Location;
use std::sync::{Arc, PoisonError};
use std::thread;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::{ExecutorRef, FrameAllocator, Panic};

use crate::child_task::task;
use crate::cleanup::{ProblemKind, report_problem, reported};
use registry::{Entry, Lookup, Registry};

/// A set of services with one of each kind.
///
/// Its services end in the reverse order of their addition, each once. [`close`](Context::close) is the whole of it: each is
/// closed, which is awaited, and shut down; then all are let go of. Who cannot wait [shuts down](Context::shutdown) or drops
/// the context, and nothing is awaited then. A service that somebody else still holds is destroyed with its last holder.
///
/// ```
/// use std::sync::Arc;
/// use convoke::executor::{Context, FromContext, Service, ServiceError};
///
/// struct Names(Vec<&'static str>);
///
/// impl Service for Names {
///     type Interface = Self;
///
///     fn into_interface(self: Arc<Self>) -> Arc<Self> {
///         self
///     }
/// }
///
/// impl FromContext for Names {
///     fn from_context(_: &Context) -> Self {
///         Names(vec!["localhost"])
///     }
/// }
///
/// let context = Context::new();
/// assert!(!context.has_service::<Names>());
/// assert_eq!(context.use_service::<Names>().0, ["localhost"]);
/// let second = context.make_service(|_| Names(vec![]));
/// assert!(matches!(second, Err(ServiceError::Duplicate(_))));
/// ```
pub struct Context {
    registry: Registry,
    allocator: FrameAllocator,
    /// Behind an `Arc`, so that nothing of the executor, which may be one of the program's, is called under the lock.
    executor: Mutex<Option<Arc<ExecutorRef>>>,
}

impl Context {
    /// Without services, and with the default frame allocator.
    pub fn new() -> Self {
        Self { registry: Registry::new(), allocator: FrameAllocator::default(), executor: Mutex::default() }
    }

    /// Another frame allocator: the one that work of this context starts with, unless its launch names one. It is
    /// chosen before the context is shared, so that asking for it takes no lock.
    ///
    /// ```
    /// use convoke::alloc::{Bounded, FrameAllocator};
    /// use convoke::executor::Context;
    ///
    /// let frames = FrameAllocator::new(Bounded::new(1 << 20));
    /// let context = Context::new().with_allocator(frames.clone());
    /// assert_eq!(context.allocator(), &frames);
    /// ```
    #[must_use]
    pub fn with_allocator(mut self, allocator: FrameAllocator) -> Self {
        self.allocator = allocator;
        self
    }

    /// Where the frames of work that is started on this context come from.
    pub fn allocator(&self) -> &FrameAllocator {
        &self.allocator
    }

    /// Where its services run work of their own, if this context belongs to something that runs: an I/O context, a simulated
    /// host. None any more when it has ended.
    pub fn executor(&self) -> Option<ExecutorRef> {
        let executor = self.lock_executor().clone();
        executor.map(|executor| ExecutorRef::clone(&executor))
    }

    /// Says where that is: for whoever has a context and runs work. The executor may lead back to the context, for it is let go of when
    /// that [ends](Context::end).
    pub fn set_executor(&self, executor: ExecutorRef) {
        let before = self.lock_executor().replace(Arc::new(executor));
        drop(before);
    }

    fn lock_executor(&self) -> MutexGuard<'_, Option<Arc<ExecutorRef>>> {
        self.executor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The service of `S`'s interface; if there is none, an `S` is made and added. Two threads that ask at the same
    /// time get the same one.
    ///
    /// # Panics
    /// Where [`try_use_service`](Context::try_use_service) returns an error.
    #[track_caller]
    pub fn use_service<S: FromContext>(&self) -> Arc<S::Interface> {
        match self.try_use_service::<S>() {
            Ok(service) => service,
            Err(error) => panic!("{error}"),
        }
    }

    /// The service of `S`'s interface; if there is none, an `S` is made and added.
    ///
    /// # Errors
    /// [`ShutDown`](ServiceError::ShutDown) if it would have to be made after the context was shut down,
    /// [`Cyclic`](ServiceError::Cyclic) if it is being made and what makes it asks for it.
    #[track_caller]
    pub fn try_use_service<S: FromContext>(&self) -> Result<Arc<S::Interface>, ServiceError> {
        self.try_use_service_at::<S>(Location::caller())
    }

    /// The same on behalf of somebody else, who asks here.
    ///
    /// # Errors
    /// As [`try_use_service`](Context::try_use_service).
    #[doc(hidden)]
    pub fn try_use_service_at<S: FromContext>(
        &self,
        place: &'static Location<'static>,
    ) -> Result<Arc<S::Interface>, ServiceError> {
        match self.registry.find_or_make::<S::Interface>()? {
            Lookup::Found(service) => Ok(service),
            Lookup::Make(permit) => {
                let (entry, interface) = Entry::new(S::from_context(self), place);
                permit.add(entry)?;
                Ok(interface)
            }
        }
    }

    /// Adds the service that `make` makes.
    ///
    /// # Errors
    /// [`Duplicate`](ServiceError::Duplicate) if there is one of the same interface, or one is being made, and
    /// [`ShutDown`](ServiceError::ShutDown) after the context was shut down; then `make` is not called.
    #[track_caller]
    pub fn make_service<S: Service>(
        &self,
        make: impl FnOnce(&Self) -> S,
    ) -> Result<Arc<S::Interface>, ServiceError> {
        let place = Location::caller();
        let permit = self.registry.make::<S::Interface>()?;
        let (entry, interface) = Entry::new(make(self), place);
        permit.add(entry)?;
        Ok(interface)
    }

    /// The service of this interface, if there is one.
    pub fn find_service<I: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<I>> {
        self.registry.find()
    }

    /// Whether there is a service of this interface.
    pub fn has_service<I: ?Sized + Send + Sync + 'static>(&self) -> bool {
        self.find_service::<I>().is_some()
    }

    /// Whether there is no service at all.
    pub fn is_empty(&self) -> bool {
        self.registry.len() == 0
    }

    /// Ends all services in order, and waits for that: the last one first, each is [closed](Service::close), then [shut
    /// down](Service::shutdown). Then all are let go of, in the same order, and the executor. From when it begins no service
    /// is added, and those that are there can be found until all are closed: one that closes may use those that it was made
    /// with.
    ///
    /// - *Completes with* nothing in particular. A stop does not reach it, but each service has a
    ///   [grace period](crate::cleanup::GRACE); what goes wrong is told to the [hook](crate::set_cleanup_hook), and the
    ///   next one is closed.
    /// - *If dropped*, the service that closes just then is told to the hook as cut short, and those before it are there still. It
    ///   is shut down with them: by another `close`, by [`shutdown`](Context::shutdown) or when the context is dropped.
    /// - *Runs on* the task.
    /// - *Panics* outside a task.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use convoke::executor::{Context, Service};
    /// use convoke::prelude::*;
    ///
    /// /// Writes down what it was told, when it ends.
    /// struct Journal {
    ///     told: Mutex<Vec<&'static str>>,
    ///     written: Arc<Mutex<String>>,
    /// }
    ///
    /// impl Service for Journal {
    ///     type Interface = Self;
    ///
    ///     fn into_interface(self: Arc<Self>) -> Arc<Self> {
    ///         self
    ///     }
    ///
    ///     async fn close(&self) {
    ///         checkpoint().await; // To be on the disk takes a while.
    ///         *self.written.lock().unwrap() = self.told.lock().unwrap().join(", ");
    ///     }
    /// }
    ///
    /// let written = Arc::new(Mutex::new(String::new()));
    /// let context = Context::new();
    /// let journal = context.make_service(|_| Journal { told: Mutex::default(), written: written.clone() }).unwrap();
    /// journal.told.lock().unwrap().extend(["begun", "ended"]);
    /// block_on(async move { context.close().await }).unwrap();
    /// assert_eq!(*written.lock().unwrap(), "begun, ended");
    /// ```
    pub async fn close(&self) {
        while let Some(last) = self.registry.next_to_close() {
            // A task of its own, so that whoever looks sees which one takes so long.
            let closing = async { task(last.close()).named(format!("service {}", last.name)).await };
            reported(last.name, last.place, closing).await;
            if self.registry.has_closed(&last) {
                reported(last.name, last.place, async { last.shutdown() }).await;
            }
        }
        // Those that a close which was cut short has left.
        while let Some(last) = self.registry.next_to_shut_down() {
            reported(last.name, last.place, async { last.shutdown() }).await;
        }
        self.let_go();
    }

    /// Shuts all services down, the last one first, each once however often this is called, without closing them: nothing is
    /// awaited. From now on none is added; those that are there can still be found.
    ///
    /// While a [`close`](Context::close) is under way it is as hard: the service that closes just then is shut down first, though it
    /// has not closed yet, and then those before it, which are not closed any more. So each is shut down before those that it
    /// was made with, as ever. The close goes on until that one service has ended its own; it shuts down nobody twice.
    ///
    /// # Panics
    /// If a service panics; the others have then been shut down all the same.
    pub fn shutdown(&self) {
        let mut first = None;
        while let Some(last) = self.registry.next_to_shut_down() {
            if let Err(panic) = Panic::catch(|| last.shutdown()) {
                first.get_or_insert(panic);
            }
        }
        // Inside of a panic a second one would end the process.
        if let Some(panic) = first
            && !thread::panicking()
        {
            panic.resume();
        }
    }

    /// Shuts down what was not closed, and lets go of all services, the last one first, and of the executor: what dropping
    /// does, for who shares the context with others.
    ///
    /// # Panics
    /// As [`shutdown`](Context::shutdown), after all were let go of.
    pub fn end(&self) {
        let ended = Panic::catch(|| self.shutdown());
        self.let_go();
        if let Err(panic) = ended {
            panic.resume();
        }
    }

    fn let_go(&self) {
        while let Some(entry) = self.registry.take_last() {
            let (name, place) = (entry.name, entry.place);
            if let Err(panic) = Panic::catch(|| drop(entry)) {
                report_problem(name, place, ProblemKind::Panicked(&panic));
            }
        }
        let executor = self.lock_executor().take();
        drop(executor);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.end();
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("services", &self.registry.len())
            .field("allocator", &self.allocator)
            .finish()
    }
}
