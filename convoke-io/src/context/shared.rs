//! What a context shares with its executors and its sockets. For the run loop it is the sleeper.

use core::fmt;
use std::sync::Arc;
use std::time::Instant;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_exec::raw::Sleeper;
use convoke_task::Context;

use crate::driver::Driver;

/// The driver and the services of a context. An executor hands it out as its
/// [`context`](convoke_core::Executor::context), and so the tasks that run there find their driver.
pub struct IoShared {
    pub(super) driver: Arc<dyn Driver>,
    pub(super) services: Context,
    stopped: AtomicBool,
}

impl IoShared {
    /// Over this driver, without services yet.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        let services = Context::new();
        Self { driver, services, stopped: AtomicBool::new(false) }
    }

    /// The driver.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// The services.
    pub fn services(&self) -> &Context {
        &self.services
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.driver.wake();
    }

    /// Whether it was asked to stop; it is not any more.
    #[inline]
    pub(super) fn take_stop(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) && self.stopped.swap(false, Ordering::AcqRel)
    }
}

impl Sleeper for IoShared {
    fn now(&self) -> Instant {
        self.driver.now()
    }

    fn sleep(&self, until: Option<Instant>) {
        if let Err(error) = self.driver.wait(until) {
            // Tasks that wait would wait for ever, and their buffers are the kernel's.
            eprintln!("convoke: the I/O driver cannot wait any more, so the process ends: {error}");
            std::process::abort();
        }
    }

    fn look(&self) {
        self.sleep(Some(self.driver.now()));
    }

    fn wake(&self) {
        self.driver.wake();
    }

    fn jumps(&self) -> bool {
        self.driver.jumps()
    }

    fn look_each(&self) -> u32 {
        self.driver.look_each()
    }

    fn choose(&self, queued: usize) -> usize {
        self.driver.choose(queued)
    }
}

impl fmt::Debug for IoShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoShared").field("services", &self.services).finish_non_exhaustive()
    }
}
