//! What a service is: found by an interface, made once, closed and shut down in its turn.

use core::future::Future;
use std::sync::Arc;

use super::Context;

/// Something that a [`Context`] has one of: a timer queue, a resolver, a signal handler.
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
    /// The type it is found by.
    type Interface: ?Sized + Send + Sync + 'static;

    /// This service as others see it: `self`.
    fn into_interface(self: Arc<Self>) -> Arc<Self::Interface>;

    /// What is awaited at its end, before [`shutdown`](Service::shutdown): a goodbye to a peer, a buffer that is written out,
    /// work of its own that is asked to stop and waited for. Called once, by [`Context::close`], while all services that
    /// were added before it are still there and may be used.
    ///
    /// It is clean-up: a stop of what is around does not reach it, it has a [grace period](crate::cleanup::GRACE), and if it panics or
    /// is stopped the [hook](crate::set_cleanup_hook) is told, and the others are closed all the same.
    fn close(&self) -> impl Future<Output = ()> + Send {
        core::future::ready(())
    }

    /// Ends what it does and lets go of the work it holds, without waiting. Called once, while all services that were
    /// added before it are still there: after [`close`](Service::close); without it, if whoever ends the context does not wait; or,
    /// if he did at first and [does not any more](Context::shutdown), while it closes, perhaps on another thread.
    fn shutdown(&self) {}
}

/// A service that a context can make by itself, when it is first asked for.
pub trait FromContext: Service + Sized {
    /// Makes it. It may use other services of the context; those end after it.
    fn from_context(context: &Context) -> Self;
}
