//! Which driver a new socket belongs to: that of the context the task runs on; on an executor without one, that which the
//! environment names.

use core::any::Any;
use std::io;
use std::sync::Arc;

use convoke_core::env::Local;
use convoke_core::raw::Frame;
use convoke_core::{Env, Executor};

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
    Frame::current(|frame| frame.and_then(|frame| driver_of(frame.host().env()))).ok_or_else(no_context)
}

/// The driver of this environment, if there is one.
pub fn driver_of(env: &Env) -> Option<Arc<dyn Driver>> {
    of_context(env.executor().context())
        .or_else(|| env.local(&IO).and_then(|executor| of_context(executor.context())))
}

fn of_context(context: Option<&(dyn Any + Send + Sync)>) -> Option<Arc<dyn Driver>> {
    context?.downcast_ref::<IoShared>().map(|shared| shared.driver.clone())
}

fn no_context() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "there is no I/O context here: run the task on one (`#[convoke::main]`, `Runtime`, `IoContext::run_until`), or name one \
         for tasks that run elsewhere (`launch(..).local(&convoke::io::IO, context.executor())`)",
    )
}
