//! `Context`: typed services, made when they are first asked for and ended in order. The books are kept in `registry`.

mod error;
mod registry;

pub use error::ServiceError;

use core::fmt;
use std::sync::Arc;
use std::thread;

use convoke_core::{FrameAllocator, Panic};

use registry::{Entry, Lookup, Registry};

/// Something that a [`Context`] has one of: a timer queue, a resolver, a signal handler.
///
/// A service is found by its *interface*. That is usually its own type; it can also be a trait, and then one
/// implementation stands in for another, say in a test:
///
/// ```
/// use std::sync::Arc;
/// use convoke::context::{Context, FromContext, Service};
///
/// trait Clock: Send + Sync {
///     fn now(&self) -> u64;
/// }
///
/// struct Stopped(u64);
///
/// impl Clock for Stopped {
///     fn now(&self) -> u64 {
///         self.0
///     }
/// }
///
/// impl Service for Stopped {
///     type Interface = dyn Clock;
///
///     fn into_interface(self: Arc<Self>) -> Arc<dyn Clock> {
///         self
///     }
/// }
///
/// let context = Context::new();
/// context.make_service(|_| Stopped(12)).unwrap();
/// assert_eq!(context.find_service::<dyn Clock>().unwrap().now(), 12);
/// ```
pub trait Service: Send + Sync + 'static {
    /// The type it is found by.
    type Interface: ?Sized + Send + Sync + 'static;

    /// This service as others see it: `self`.
    fn into_interface(self: Arc<Self>) -> Arc<Self::Interface>;

    /// Ends what it does and lets go of the work it holds. Called once, while all services that were added before
    /// it are still there.
    fn shutdown(&self) {}
}

/// A service that a context can make by itself, when it is first asked for.
pub trait FromContext: Service + Sized {
    /// Makes it. It may use other services of the context; those end after it.
    fn from_context(context: &Context) -> Self;
}

/// A set of services with one of each kind.
///
/// Shut down, or dropped, it shuts its services down in the reverse order of their addition, each once; dropped, it
/// then lets go of them in the same order. A service that somebody else still holds is destroyed with its last holder.
///
/// ```
/// use std::sync::Arc;
/// use convoke::context::{Context, FromContext, Service, ServiceError};
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
}

impl Context {
    /// Without services, and with the default frame allocator.
    pub fn new() -> Self {
        Self { registry: Registry::new(), allocator: FrameAllocator::default() }
    }

    /// Another frame allocator: the one that work of this context starts with, unless its launch names one. It is
    /// chosen before the context is shared, so that asking for it takes no lock.
    ///
    /// ```
    /// use convoke::frames::{Bounded, FrameAllocator};
    /// use convoke::Context;
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
    pub fn try_use_service<S: FromContext>(&self) -> Result<Arc<S::Interface>, ServiceError> {
        match self.registry.find_or_make::<S::Interface>()? {
            Lookup::Found(service) => Ok(service),
            Lookup::Make(permit) => {
                let (entry, interface) = Entry::new(S::from_context(self));
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
    pub fn make_service<S: Service>(
        &self,
        make: impl FnOnce(&Self) -> S,
    ) -> Result<Arc<S::Interface>, ServiceError> {
        let permit = self.registry.make::<S::Interface>()?;
        let (entry, interface) = Entry::new(make(self));
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

    /// Shuts all services down, the last one first, each once however often this is called. From now on none is
    /// added; those that are there can still be found.
    ///
    /// # Panics
    /// If a service panics; the others have then been shut down all the same.
    pub fn shutdown(&self) {
        let mut first = None;
        while let Some(shut_down) = self.registry.next_to_shut_down() {
            if let Err(panic) = Panic::catch(shut_down) {
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
}

impl Drop for Context {
    fn drop(&mut self) {
        let ended = Panic::catch(|| self.shutdown());
        while let Some(entry) = self.registry.take_last() {
            drop(entry);
        }
        if let Err(panic) = ended {
            panic.resume();
        }
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
