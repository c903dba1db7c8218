//! One run of a host, from its start to its end or crash: the loop that its tasks run on, with its own
//! driver, clock and timers. A crash only stops calling [`HostRun::run_one`]: then none of its tasks is
//! polled again.

use core::cell::Cell;
use core::time::Duration;
use std::sync::Arc;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::{ExecutorRef, StopSource};
use convoke_exec::RunLoop;
use convoke_io::context::IoShared;
use convoke_net::signal::{Signal, SignalHub};
use convoke_task::chance::{CHANCE, Chance};
use convoke_task::{Context, Launch, launch};

use crate::clock::Clock;
use crate::driver::SimDriver;
use crate::note::{CURRENT_HOST, CurrentHost};
use crate::world::{HostId, World};

/// One run of a host. Its loop uses its driver as every I/O context does.
pub(crate) struct HostRun {
    run_loop: RunLoop,
    io: Arc<IoShared>,
    current_host: CurrentHost,
    clock: Clock,
    /// Requested to stop by SIGINT and SIGTERM.
    source: StopSource,
    signals: Arc<SignalHub>,
    /// Set by the driver when work arrives while the loop is parked.
    awake: Arc<AtomicBool>,
    parked: Cell<bool>,
    /// While the loop is parked: the simulated time at which its next timer is due.
    until: Cell<Option<Duration>>,
}

impl HostRun {
    pub(crate) fn new(world: Arc<World>, host: HostId, number: u64, clock: Clock) -> Self {
        let source = StopSource::new();
        let signals = Arc::new(SignalHub::asking(source.clone()));
        let driver = SimDriver::new(world.clone(), host, number, clock, signals.clone());
        let awake = driver.awake();
        let io = Arc::new(IoShared::new(Arc::new(driver)));
        let run_loop = RunLoop::over(io.clone(), Some(io.clone()));
        let (current_host, parked, until) = (CurrentHost { world, host }, Cell::new(false), Cell::new(None));
        Self { run_loop, io, current_host, clock, source, signals, awake, parked, until }
    }

    /// Delivers a signal to the host.
    pub(crate) fn deliver_signal(&self, signal: Signal) {
        self.signals.hear(signal);
    }

    /// Returns the settings to launch its program with. Its random numbers come from the seed.
    pub(crate) fn launch(&self) -> Launch {
        let world = self.current_host.world.clone();
        let chance = Chance::new(move || world.with(|state| state.random.draw()));
        let launch = launch(&self.run_loop.executor()).stop_token(self.source.token());
        launch.local(&CHANCE, chance).local(&CURRENT_HOST, self.current_host.clone())
    }

    /// Returns the services of the host. Dropping the returned value ends them.
    pub(crate) fn services(&self) -> Services {
        // This creates a reference cycle; the end of the services breaks it.
        self.io.services().set_executor(ExecutorRef::new(self.run_loop.executor()));
        Services(self.io.clone())
    }

    /// Returns true if there may be something to run at `now`.
    pub(crate) fn is_awake(&self, now: Duration) -> bool {
        !self.parked.get()
            || self.awake.load(Ordering::Acquire)
            || self.until.get().is_some_and(|until| until <= now)
    }

    /// Runs one piece of its work and returns true, or parks and returns false if there is none.
    pub(crate) fn run_one(&self) -> bool {
        self.unpark();
        let ran = self.run_loop.run_one();
        if !ran {
            let next = self.run_loop.next_timer();
            self.until.set(next.map(|shows| self.clock.passed_when(self.current_host.world.start(), shows)));
            self.parked.set(self.run_loop.doze());
        }
        ran
    }

    fn unpark(&self) {
        if self.parked.replace(false) {
            self.awake.store(false, Ordering::Release);
            self.run_loop.rouse();
        }
    }

    /// Runs the work that is left when its program has ended, such as remote wakes of finished tasks.
    pub(crate) fn run_ready(&self) {
        self.unpark();
        self.run_loop.run_ready();
    }

    /// Calls `f`, then stops all queued work without polling it.
    pub(crate) fn stop_unrun(&self, f: impl FnOnce()) {
        self.unpark();
        self.run_loop.stop_unrun(f);
    }

    /// Returns the simulated time at which its next timer is due, if the loop is parked.
    pub(crate) fn next_timer(&self) -> Option<Duration> {
        self.until.get()
    }
}

/// The services of one run of a host. They end with its program, or when this is dropped, also if the program
/// never runs.
pub(crate) struct Services(Arc<IoShared>);

impl Services {
    pub(crate) fn context(&self) -> &Context {
        self.0.services()
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        // The panic hook has already reported a panic of a service.
        let _ = convoke_core::Panic::catch(|| self.context().end());
    }
}
