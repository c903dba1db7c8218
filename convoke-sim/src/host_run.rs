//! One run of a host, from its start to its end or crash: the loop that its tasks run on, with its own
//! driver, clock and timers. A crash only stops calling [`HostRun::run_one`]: then none of its tasks is
//! polled again.

use core::cell::Cell;
use std::sync::Arc;

use convoke_core::{ExecutorRef, StopSource};
use convoke_exec::RunLoop;
use convoke_io::context::IoShared;
use convoke_net::signal::{Signal, SignalHub};
use convoke_task::chance::{CHANCE, Chance};
use convoke_task::{Context, Launch, launch};

use crate::driver::SimDriver;
use crate::note::{CURRENT_HOST, CurrentHost};
use crate::world::{HostId, World};

/// One run of a host. Its loop uses its driver as every I/O context does.
pub(crate) struct HostRun {
    run_loop: RunLoop,
    io: Arc<IoShared>,
    current_host: CurrentHost,
    /// Requested to stop by SIGINT and SIGTERM.
    source: StopSource,
    signals: Arc<SignalHub>,
    parked: Cell<bool>,
    /// True if the world knows of a timer of the loop.
    has_timer: Cell<bool>,
}

impl HostRun {
    pub(crate) fn new(world: Arc<World>, host: HostId, number: u64) -> Self {
        let source = StopSource::new();
        let signals = Arc::new(SignalHub::asking(source.clone()));
        let driver = SimDriver::new(world.clone(), host, number, signals.clone());
        let io = Arc::new(IoShared::new(Arc::new(driver)));
        let run_loop = RunLoop::over(io.clone(), Some(io.clone()));
        let current_host = CurrentHost { world, host };
        let (parked, has_timer) = (Cell::new(false), Cell::new(false));
        Self { run_loop, io, current_host, source, signals, parked, has_timer }
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

    /// Runs one piece of its work. Returns false if there is none. Then it parks, if nothing is left to run.
    pub(crate) fn run_one(&self) -> bool {
        self.unpark();
        let ran = self.run_loop.run_one();
        self.park();
        ran
    }

    /// Parks the loop: it is run again when its driver is woken, when something has happened that it waits
    /// for, or when its timer is due. If there is something to run now, it stays among the hosts to be run.
    fn park(&self) {
        let CurrentHost { world, host } = &self.current_host;
        self.parked.set(self.run_loop.doze());
        let timer = self.run_loop.next_timer();
        if !self.parked.get() || timer.is_some() || self.has_timer.get() {
            self.has_timer.set(timer.is_some());
            world.with(|state| {
                let clock = state.clock_of(*host);
                state.set_timer(*host, timer.map(|shows| clock.passed_when(world.start(), shows)));
                if !self.parked.get() {
                    state.mark_ready(*host);
                }
            });
        }
    }

    fn unpark(&self) {
        if self.parked.replace(false) {
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
