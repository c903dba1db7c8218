//! [`Context`]: typed services, made when they are first asked for, and ended in order.
//!
//! Any thread may ask for a service. The first to ask makes it, without a lock held; others wait for it.
//! [`Context::close`] ends the services in a task, the last one first; [`Context::shutdown`] does so without
//! waiting, from any thread, also while a close is under way.

// | file | contents |
// | --- | --- |
// | `service.rs`, `error.rs` | the traits of a service; the errors |
// | `execution_context.rs` | the concept of what runs work and has services |
// | `registry.rs` | which services there are, which are being made, and the order of their end |

mod error;
mod execution_context;
mod registry;
mod service;

pub use error::ServiceError;
pub use execution_context::ExecutionContext;
pub use service::{FromContext, Service};

use core::fmt;
use core::panic::Location;
use std::sync::{Arc, PoisonError};
use std::thread;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{DropOutOfLine, LastUse, OutOfLine};
use convoke_core::{ExecutorRef, FrameAllocator, Panic};

use crate::child_task::task;
use crate::cleanup::{ProblemKind, report_problem, reported};
use registry::{Entry, Lookup, Registry};

/// A set of services with one of each kind.
///
/// Its services end in the reverse order of their addition, each once. [`close`](Context::close) is the
/// complete end: each service is closed, which is awaited, and shut down; then all are dropped. Code that
/// cannot wait [shuts down](Context::shutdown) or drops the context, and then nothing is awaited. A service
/// that something else still holds is destroyed with its last reference.
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
    registry: OutOfLine<Registry>,
    allocator: FrameAllocator,
    /// Behind an `Arc`, so that no code of the executor, which may be the program's, runs under the lock.
    executor: Mutex<Option<Arc<ExecutorRef>>>,
}

impl DropOutOfLine for Context {
    #[inline(never)]
    fn drop_out_of_line(context: LastUse<'_, Self>) {
        context.drop_here();
    }
}

impl Context {
    /// Creates a context without services, and with the default frame allocator.
    pub fn new() -> Self {
        Self {
            registry: OutOfLine::new(Registry::new()),
            allocator: FrameAllocator::default(),
            executor: Mutex::default(),
        }
    }

    /// Sets the frame allocator that work of this context starts with, unless its launch names one. It is
    /// chosen before the context is shared, so that reading it takes no lock.
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

    /// Returns the allocator of the frames of work that is started on this context.
    pub fn allocator(&self) -> &FrameAllocator {
        &self.allocator
    }

    /// Returns the executor on which services run work of their own, if this context belongs to something
    /// that runs: an I/O context, a simulated host. `None` after it has ended.
    pub fn executor(&self) -> Option<ExecutorRef> {
        let executor = self.lock_executor().clone();
        executor.map(|executor| ExecutorRef::clone(&executor))
    }

    /// Sets the executor on which services run work of their own. It may lead back to the context, since it
    /// is dropped when the context [ends](Context::end).
    pub fn set_executor(&self, executor: ExecutorRef) {
        let before = self.lock_executor().replace(Arc::new(executor));
        drop(before);
    }

    fn lock_executor(&self) -> MutexGuard<'_, Option<Arc<ExecutorRef>>> {
        self.executor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the service of `S`'s interface; if there is none, makes an `S` and adds it. Two threads that
    /// ask at the same time get the same one.
    ///
    /// # Panics
    /// If [`try_use_service`](Context::try_use_service) returns an error.
    #[track_caller]
    pub fn use_service<S: FromContext>(&self) -> Arc<S::Interface> {
        match self.try_use_service::<S>() {
            Ok(service) => service,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the service of `S`'s interface; if there is none, makes an `S` and adds it.
    ///
    /// # Errors
    /// [`ShutDown`](ServiceError::ShutDown) if it would have to be made after the context was shut down,
    /// [`Cyclic`](ServiceError::Cyclic) if it is being made and its constructor asks for it.
    #[track_caller]
    pub fn try_use_service<S: FromContext>(&self) -> Result<Arc<S::Interface>, ServiceError> {
        self.try_use_service_at::<S>(Location::caller())
    }

    /// Returns the service of `S`'s interface on behalf of a caller at `location`; if there is none, makes an
    /// `S`.
    ///
    /// # Errors
    /// As [`try_use_service`](Context::try_use_service).
    #[doc(hidden)]
    pub fn try_use_service_at<S: FromContext>(
        &self,
        location: &'static Location<'static>,
    ) -> Result<Arc<S::Interface>, ServiceError> {
        match self.registry.find_or_make::<S::Interface>()? {
            Lookup::Found(service) => Ok(service),
            Lookup::Make(permit) => {
                let (entry, interface) = Entry::new(S::from_context(self), location);
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
        let location = Location::caller();
        let permit = self.registry.make::<S::Interface>()?;
        let (entry, interface) = Entry::new(make(self), location);
        permit.add(entry)?;
        Ok(interface)
    }

    /// Returns the service of this interface, if there is one.
    pub fn find_service<I: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<I>> {
        self.registry.find()
    }

    /// Returns true if there is a service of this interface.
    pub fn has_service<I: ?Sized + Send + Sync + 'static>(&self) -> bool {
        self.find_service::<I>().is_some()
    }

    /// Returns true if there is no service at all.
    pub fn is_empty(&self) -> bool {
        self.registry.len() == 0
    }

    /// Ends all services in order, and waits for that: the last one first, each is [closed](Service::close),
    /// then [shut down](Service::shutdown). Then all are dropped, in the same order, and the executor. No
    /// service is added once this has begun, and the existing ones can be found until all are closed: a
    /// service that closes may use those that it was made with.
    ///
    /// - *Completes with* `()`. A stop does not reach it, but each service has a [grace
    ///   period](crate::cleanup::GRACE). Failures are reported to the [hook](crate::set_cleanup_hook), and
    ///   the next service is closed.
    /// - *If dropped*, the service that is closing is reported to the hook as cut short, and those before it
    ///   remain. All of them are shut down by another `close`, by [`shutdown`](Context::shutdown) or when the
    ///   context is dropped.
    /// - *Runs on* the task's executor.
    /// - *Panics* outside a task.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use convoke::executor::{Context, Service};
    /// use convoke::prelude::*;
    ///
    /// /// Writes its lines when it closes.
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
    ///         checkpoint().await; // A real journal writes to disk here.
    ///         *self.written.lock().unwrap() = self.told.lock().unwrap().join(", ");
    ///     }
    /// }
    ///
    /// let written = Arc::new(Mutex::new(String::new()));
    /// let context = Context::new();
    /// let journal = context
    ///     .make_service(|_| Journal { told: Mutex::default(), written: written.clone() })
    ///     .unwrap();
    /// journal.told.lock().unwrap().extend(["begun", "ended"]);
    /// block_on(async move { context.close().await }).unwrap();
    /// assert_eq!(*written.lock().unwrap(), "begun, ended");
    /// ```
    pub async fn close(&self) {
        while let Some(last) = self.registry.next_to_close() {
            // A task of its own, so that inspection shows which service takes long.
            let closing = async { task(last.close()).named(format!("service {}", last.name)).await };
            reported(last.name, last.location, Box::pin(closing)).await;
            if self.registry.has_closed(&last) {
                last.shut_down_reported().await;
            }
        }
        // Services that a close which was cut short has left.
        while let Some(last) = self.registry.next_to_shut_down() {
            last.shut_down_reported().await;
        }
        self.drop_all();
    }

    /// Shuts all services down, the last one first, each once however often this is called, without closing
    /// them: nothing is awaited. No service is added any more; the existing ones can still be found.
    ///
    /// If a [`close`](Context::close) is under way, the service that is closing is shut down first, though it
    /// has not closed yet, and then those before it, which are no longer closed. So each is shut down before
    /// those that it was made with, as always. The close goes on until that one service has finished closing;
    /// it shuts down no service twice.
    ///
    /// # Panics
    /// If a service panics; the others are shut down all the same.
    pub fn shutdown(&self) {
        let mut first = None;
        while let Some(last) = self.registry.next_to_shut_down() {
            if let Err(panic) = Panic::catch(|| last.shutdown()) {
                first.get_or_insert(panic);
            }
        }
        // During a panic a second one would abort the process.
        if let Some(panic) = first
            && !thread::panicking()
        {
            panic.resume();
        }
    }

    /// Shuts down the services that were not closed, and drops all services, the last one first, and the
    /// executor. Dropping the context does the same; this is for a context that is shared.
    ///
    /// # Panics
    /// As [`shutdown`](Context::shutdown), after all were dropped.
    pub fn end(&self) {
        let ended = Panic::catch(|| self.shutdown());
        self.drop_all();
        if let Err(panic) = ended {
            panic.resume();
        }
    }

    /// Drops all services, the last one first, and the executor.
    fn drop_all(&self) {
        while let Some(entry) = self.registry.take_last() {
            let (name, location) = (entry.name, entry.location);
            if let Err(panic) = Panic::catch(|| drop(entry)) {
                report_problem(name, location, ProblemKind::Panicked(&panic));
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
