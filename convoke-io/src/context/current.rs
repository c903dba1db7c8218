//! The driver and the services of the current task: those of the I/O context that it runs on. On another
//! executor they are those of the context that the environment names (`IO`).

use core::any::Any;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use convoke_core::env::Local;
use convoke_core::raw::Frame;
use convoke_core::{Env, Executor, ExecutorRef};
use convoke_task::Context;
use convoke_task::context::FromContext;

use super::{IoExecutor, IoShared};
use crate::driver::Driver;

/// The I/O context for tasks that run elsewhere, for example on a thread pool. A runtime sets it; a launch
/// can set it too: `launch(&pool.executor()).local(&IO, context.executor())`.
pub static IO: Local<IoExecutor> = Local::inherited("I/O context");

/// Returns the driver for sockets that the current task creates.
///
/// # Errors
/// Fails if the task does not run on an I/O context and its environment names none.
pub fn current_driver() -> io::Result<Arc<dyn Driver>> {
    with_context(|shared| shared.driver.clone())
}

/// Reads the time of day: from the driver of the current task, or from the system if there is none. Programs
/// that use it instead of `SystemTime::now` get the time of their host in a simulation.
///
/// Use it for dates that people read or that are stored. The time of day may jump back and forth, so use
/// `convoke::time::now` to measure durations and for deadlines.
///
/// ```
/// use std::time::UNIX_EPOCH;
/// use convoke::time::time_of_day;
///
/// let since_1970 = time_of_day().duration_since(UNIX_EPOCH);
/// println!("{} days since 1970", since_1970.unwrap().as_secs() / 86_400);
/// ```
#[doc(alias = "SystemTime")]
pub fn time_of_day() -> SystemTime {
    with_context(|shared| shared.driver.time_of_day()).unwrap_or_else(|_| SystemTime::now())
}

/// Returns the driver of this environment, if there is one.
pub fn driver_of(env: &Env) -> Option<Arc<dyn Driver>> {
    shared_of(env).map(|shared| shared.driver.clone())
}

/// Returns the driver of this executor, if it belongs to an I/O context.
pub fn driver_of_executor(executor: &impl Executor) -> Option<Arc<dyn Driver>> {
    of_context(executor.context()).map(|shared| shared.driver.clone())
}

/// Returns the services of this environment's context, if there is one. A pool with services of its own
/// ([`PoolContext`](convoke_task::PoolContext)) is one.
pub fn services_of(env: &Env) -> Option<&Context> {
    own_services(env.executor()).or_else(|| shared_of(env).map(IoShared::services))
}

/// Returns the services of a context that does no I/O.
fn own_services(executor: &ExecutorRef) -> Option<&Context> {
    executor.context()?.downcast_ref::<Context>()
}

/// Calls `f` with the services of the current task's context: of the I/O context or the pool that it runs on, or of the
/// I/O context that its environment names.
///
/// # Errors
/// Fails as [`current_driver`] does.
pub fn with_services<R>(f: impl FnOnce(&Context) -> R) -> io::Result<R> {
    Frame::current(|frame| {
        let frame = frame?;
        let executor = frame.operation_owner().env().executor();
        let services = own_services(executor)
            .or_else(|| shared_by(executor, || frame.local(&IO)).map(IoShared::services));
        services.map(f)
    })
    .ok_or_else(no_context)
}

/// Returns the service with `S`'s interface from the current task's context. Creates an `S` if there is none;
/// it lives as long as the context, and is closed with it.
///
/// # Errors
/// Fails as [`current_driver`] does; also if the context has begun to close, or if the service requests
/// itself while it is created.
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
///         checkpoint().await; // The driver still works here.
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
/// assert_eq!(context.block_on(request()).unwrap().unwrap(), 1);
/// assert_eq!(context.block_on(request()).unwrap().unwrap(), 2);
/// drop(context); // 2 requests
/// ```
#[track_caller]
pub fn use_service<S: FromContext>() -> io::Result<Arc<S::Interface>> {
    let location = core::panic::Location::caller();
    with_services(|services| services.try_use_service_at::<S>(location))?.map_err(io::Error::other)
}

fn with_context<R>(f: impl FnOnce(&IoShared) -> R) -> io::Result<R> {
    Frame::current(|frame| {
        let frame = frame?;
        shared_by(frame.operation_owner().env().executor(), || frame.local(&IO)).map(f)
    })
    .ok_or_else(no_context)
}

fn shared_of(env: &Env) -> Option<&IoShared> {
    shared_by(env.executor(), || env.local(&IO))
}

/// Returns the context of the executor that work runs on, or else the one that its environment names.
fn shared_by<'a>(
    runs_on: &'a ExecutorRef,
    named: impl FnOnce() -> Option<&'a IoExecutor>,
) -> Option<&'a IoShared> {
    of_context(runs_on.context()).or_else(|| named().and_then(|executor| of_context(executor.context())))
}

fn of_context(context: Option<&(dyn Any + Send + Sync)>) -> Option<&IoShared> {
    context?.downcast_ref::<IoShared>()
}

fn no_context() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "there is no I/O context here: run the task on one (`#[convoke::main]`, `Runtime`, `IoContext::block_on`), or name one \
             for tasks that run elsewhere (`launch(..).local(&convoke::driver::IO, context.executor())`). Inside `convoke_tokio::run`, use \
             tokio's sockets",
    )
}
