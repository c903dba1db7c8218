//! Where the tasks of a host run: on the loop that all hosts share, with the host's own driver and the host's own clock.

use core::any::Any;
use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

use convoke_core::raw::{Home, Runnable, Timer, Timers};
use convoke_core::{Executor, StopSource, StopToken};
use convoke_exec::{Context, RunLoopExecutor};
use convoke_io::context::IoShared;
use convoke_io::signal::{Signal, Switchboard};

use crate::clock::Clock;
use crate::driver::SimDriver;
use crate::world::{HostId, World};

/// The executor of a host, in one of its lives.
#[derive(Clone)]
pub(crate) struct HostExecutor(Arc<Place>);

struct Place {
    run_loop: RunLoopExecutor,
    world: Arc<World>,
    clock: Clock,
    io: IoShared,
    /// Asked to stop by SIGINT and SIGTERM.
    source: StopSource,
    signals: Arc<Switchboard>,
}

impl HostExecutor {
    pub(crate) fn new(
        run_loop: RunLoopExecutor,
        world: Arc<World>,
        host: HostId,
        life: u32,
        clock: Clock,
    ) -> Self {
        let source = StopSource::new();
        let signals = Arc::new(Switchboard::asking(source.clone()));
        let driver = SimDriver::new(world.clone(), host, life, clock, signals.clone());
        let io = IoShared::new(Arc::new(driver));
        Self(Arc::new(Place { run_loop, world, clock, io, source, signals }))
    }

    /// Asked to stop when the host hears of a signal that asks for it.
    pub(crate) fn stop_token(&self) -> StopToken {
        self.0.source.token()
    }

    /// The host hears of a signal.
    pub(crate) fn hear(&self, signal: Signal) {
        self.0.signals.hear(signal);
    }

    /// Those of the host, in this life.
    pub(crate) fn services(&self) -> &Context {
        self.0.io.services()
    }
}

#[diagnostic::do_not_recommend]
impl Executor for HostExecutor {
    fn post(&self, runnable: Runnable) {
        self.0.run_loop.post(runnable);
    }

    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        self.0.run_loop.dispatch(runnable)
    }

    fn home(&self) -> Option<&Home> {
        self.0.run_loop.home()
    }

    fn timers(&self) -> Option<&dyn Timers> {
        Some(&*self.0)
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(&self.0.io)
    }
}

impl Place {
    fn timers(&self) -> &dyn Timers {
        self.run_loop.timers().expect("a run loop has timers")
    }
}

// SAFETY: all timers are given to those of the run loop, which keep the contract; not before their time: the clock shows `at`
// when the world's time is what they are armed for. Whoever has them has the place, and so the loop's timers.
unsafe impl Timers for Place {
    fn now(&self) -> Instant {
        self.clock.shows(self.world.start(), self.world.with(|state| state.now))
    }

    unsafe fn arm(&self, timer: NonNull<Timer>, at: Instant) {
        let start = self.world.start();
        // SAFETY: the caller's.
        unsafe { self.timers().arm(timer, start + self.clock.passed_when(start, at)) };
    }

    unsafe fn disarm(&self, timer: NonNull<Timer>) -> bool {
        // SAFETY: the caller's.
        unsafe { self.timers().disarm(timer) }
    }
}

impl PartialEq for HostExecutor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for HostExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostExecutor").field("clock", &self.0.clock).finish_non_exhaustive()
    }
}
