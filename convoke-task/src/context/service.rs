//! The traits of a service: found by an interface, made once, closed and shut down in order.

use core::future::Future;
use std::sync::Arc;

use super::Context;

/// A part of a program of which a [`Context`] has one: a timer queue, a resolver, a signal handler.
///
/// A service is found by its *interface*. That is usually its own type; it can also be a trait, and then one
/// implementation stands in for another, say in a test:
///
/// ```
/// use std::sync::Arc;
/// use convoke::executor::{Context, FromContext, Service};
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
    /// The type that the service is found by.
    type Interface: ?Sized + Send + Sync + 'static;

    /// Returns the service as its interface: mostly `self`.
    fn into_interface(self: Arc<Self>) -> Arc<Self::Interface>;

    /// Ends the service, and is awaited, before [`shutdown`](Service::shutdown): says goodbye to a peer,
    /// writes out a buffer, stops its own work and waits for it. Called once, by [`Context::close`], while
    /// all services that were added before it are still open and may be used.
    ///
    /// It is clean-up: a stop from around does not reach it, and it has a [grace
    /// period](crate::cleanup::GRACE). If it panics or is stopped, that is reported to the
    /// [hook](crate::set_cleanup_hook), and the others are closed all the same.
    fn close(&self) -> impl Future<Output = ()> + Send {
        core::future::ready(())
    }

    /// Ends the service without waiting, and releases what it holds. Called once, while all services that
    /// were added before it are still there: after [`close`](Service::close); without it, if the context is
    /// dropped or shut down; or while `close` runs, perhaps on another thread, if [`Context::shutdown`]
    /// interrupts it.
    fn shutdown(&self) {}
}

/// A service that a context can make by itself, when it is first asked for.
pub trait FromContext: Service + Sized {
    /// Makes the service. It may use other services of the context; those end after it.
    fn from_context(context: &Context) -> Self;
}
