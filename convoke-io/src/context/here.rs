//! Which driver a new socket belongs to, and which services a task finds: those of the context the task runs on; on an
//! executor without one, of that which the environment names.

use core::any::Any;
use std::io;
use std::sync::Arc;

use convoke_core::env::Local;
use convoke_core::raw::Frame;
use convoke_core::{Env, Executor};
use convoke_task::Context;
use convoke_task::context::FromContext;

use super::{IoExecutor, IoShared};
use crate::driver::Driver;

/// The context that does I/O for tasks which run elsewhere, on a thread pool for one. Runtimes set it; so may a launch:
/// `launch(&pool.executor()).local(&IO, context.executor())`.
pub static IO: Local<IoExecutor> = Local::inherited("I/O context");

/// The driver that a socket made here belongs to.
///
/// # Errors
/// If there is none: the task runs on no I/O context, and its environment names none.
pub fn current_driver() -> io::Result<Arc<dyn Driver>> {
    with_context(|shared| shared.driver.clone())
}

/// The driver of this environment, if there is one.
pub fn driver_of(env: &Env) -> Option<Arc<dyn Driver>> {
    shared_of(env).map(|shared| shared.driver.clone())
}

/// The driver of this executor, if it is one of a context.
pub fn driver_of_executor(executor: &impl Executor) -> Option<Arc<dyn Driver>> {
    of_context(executor.context()).map(|shared| shared.driver.clone())
}

/// The services of this environment's context, if there is one.
pub fn services_of(env: &Env) -> Option<&Context> {
    shared_of(env).map(IoShared::services)
}

/// Calls `f` with the services of the context that the task runs on.
///
/// # Errors
/// As [`current_driver`].
pub fn with_services<R>(f: impl FnOnce(&Context) -> R) -> io::Result<R> {
    with_context(|shared| f(&shared.services))
}

/// The service of `S`'s interface, of the context that the task runs on. If there is none, an `S` is made; it lives as long as
/// the context does, and is closed with it.
///
/// # Errors
/// As [`current_driver`]; and if the context has begun to end, or the service asks for itself.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use convoke::executor::{Context, FromContext, Service};
/// use convoke::driver::use_service;
/// use convoke::prelude::*;
///
/// /// How many requests there have been, in all tasks of the context.
/// struct Requests(AtomicU32);
///
/// impl Service for Requests {
///     type Interface = Self;
///
///     fn into_interface(self: Arc<Self>) -> Arc<Self> {
///         self
///     }
///
///     async fn close(&self) {
///         checkpoint().await; // Whatever is awaited here, the driver is still there.
///         println!("{} requests", self.0.load(Ordering::Relaxed));
///     }
/// }
///
/// impl FromContext for Requests {
///     fn from_context(_: &Context) -> Self {
///         Requests(AtomicU32::new(0))
///     }
/// }
///
/// async fn request() -> std::io::Result<u32> {
///     Ok(use_service::<Requests>()?.0.fetch_add(1, Ordering::Relaxed) + 1)
/// }
///
/// let context = convoke::driver::io_context().unwrap();
/// assert_eq!(context.run_until(request()).unwrap().unwrap(), 1);
/// assert_eq!(context.run_until(request()).unwrap().unwrap(), 2);
/// drop(context); // 2 requests
/// ```
#[track_caller]
pub fn use_service<S: FromContext>() -> io::Result<Arc<S::Interface>> {
    let place = core::panic::Location::caller();
    with_services(|services| services.try_use_service_at::<S>(place))?.map_err(io::Error::other)
}

fn with_context<R>(f: impl FnOnce(&IoShared) -> R) -> io::Result<R> {
    Frame::current(|frame| frame.and_then(|frame| shared_of(frame.operation_owner().env())).map(f))
        .ok_or_else(no_context)
}

fn shared_of(env: &Env) -> Option<&IoShared> {
    of_context(env.executor().context())
        .or_else(|| env.local(&IO).and_then(|executor| of_context(executor.context())))
}

fn of_context(context: Option<&(dyn Any + Send + Sync)>) -> Option<&IoShared> {
    context?.downcast_ref::<IoShared>()
}

fn no_context() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "there is no I/O context here: run the task on one (`#[convoke::main]`, `Runtime`, `IoContext::run_until`), or name one \
         for tasks that run elsewhere (`launch(..).local(&convoke::driver::IO, context.executor())`)",
    )
}
