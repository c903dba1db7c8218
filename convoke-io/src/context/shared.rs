//! `IoShared`: the state that a context shares with its executors and sockets. It is the sleeper of the run
//! loop.

use core::fmt;
use std::sync::Arc;
use std::time::Instant;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::{OutOfLine, abort_with};
use convoke_exec::raw::Sleeper;
use convoke_task::Context;

use crate::driver::Driver;

/// The driver and the services of a context. An executor returns it as its
/// [`context`](convoke_core::Executor::context), which is how tasks find their driver.
pub struct IoShared {
    pub(super) driver: Arc<dyn Driver>,
    pub(super) services: OutOfLine<Context>,
    stopped: AtomicBool,
}

impl IoShared {
    /// Creates the state over this driver, without services.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self::with_services(driver, Context::new())
    }

    /// Creates the state over this driver, with these services.
    pub fn with_services(driver: Arc<dyn Driver>, services: Context) -> Self {
        Self { driver, services: OutOfLine::new(services), stopped: AtomicBool::new(false) }
    }

    /// Returns the driver.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// Returns the services.
    pub fn services(&self) -> &Context {
        &self.services
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.driver.wake();
    }

    /// Returns true if the running call is to return.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Clears the stop flag, at the end of a call that runs the context.
    pub(super) fn forget_stop(&self) {
        self.stopped.store(false, Ordering::Relaxed);
    }
}

impl Sleeper for IoShared {
    fn now(&self) -> Instant {
        self.driver.now()
    }

    fn sleep(&self, until: Option<Instant>) {
        self.driver.wait(until).unwrap_or_else(cannot_wait);
    }

    fn check(&self) {
        self.driver.check().unwrap_or_else(cannot_wait);
    }

    fn wake(&self) {
        self.driver.wake();
    }

    fn jumps(&self) -> bool {
        self.driver.jumps()
    }

    fn runs_per_check(&self) -> u32 {
        self.driver.runs_per_check()
    }

    fn choose(&self, queued: usize) -> usize {
        self.driver.choose(queued)
    }
}

/// Aborts: waiting tasks would wait for ever, and the kernel may still use their buffers.
#[cold]
fn cannot_wait(error: std::io::Error) {
    abort_with(&format_args!("the I/O driver cannot wait for events any more; aborting the process: {error}"))
}

impl fmt::Debug for IoShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoShared").field("services", &self.services).finish_non_exhaustive()
    }
}
