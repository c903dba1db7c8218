//! One life of a host, from its start to its end or its crash: the loop that its tasks run on, with its own driver, its own
//! clock and its own timers. A life that is not run any more does nothing: that is what a crash is made of.

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
use crate::note::{HERE, Here};
use crate::world::{HostId, World};

/// See the head of this file. Its loop leans on its driver, as that of every I/O context does.
pub(crate) struct Life {
    run_loop: RunLoop,
    io: Arc<IoShared>,
    here: Here,
    clock: Clock,
    /// Asked to stop by SIGINT and SIGTERM.
    source: StopSource,
    signals: Arc<SignalHub>,
    /// Set by whoever gives it work while it rests.
    awake: Arc<AtomicBool>,
    rests: Cell<bool>,
    /// While it rests: how much of the world's time has passed when its next timer is due.
    until: Cell<Option<Duration>>,
}

impl Life {
    pub(crate) fn new(world: Arc<World>, host: HostId, number: u64, clock: Clock) -> Self {
        let source = StopSource::new();
        let signals = Arc::new(SignalHub::asking(source.clone()));
        let driver = SimDriver::new(world.clone(), host, number, clock, signals.clone());
        let awake = driver.awake();
        let io = Arc::new(IoShared::new(Arc::new(driver)));
        let run_loop = RunLoop::over(io.clone(), Some(io.clone()));
        let (here, rests, until) = (Here { world, host }, Cell::new(false), Cell::new(None));
        Self { run_loop, io, here, clock, source, signals, awake, rests, until }
    }

    /// The host hears of a signal.
    pub(crate) fn hear(&self, signal: Signal) {
        self.signals.hear(signal);
    }

    /// How its program is to be launched. What that draws by chance is the seed's.
    pub(crate) fn launch(&self) -> Launch {
        let world = self.here.world.clone();
        let chance = Chance::new(move || world.with(|state| state.random.draw()));
        let launch = launch(&self.run_loop.executor()).stop_token(self.source.token());
        launch.local(&CHANCE, chance).local(&HERE, self.here.clone())
    }

    /// The services of the host: who has them lets go of them when he is dropped.
    pub(crate) fn services(&self) -> Services {
        // A ring, which the end of the services opens.
        self.io.services().set_executor(ExecutorRef::new(self.run_loop.executor()));
        Services(self.io.clone())
    }

    /// Whether there may be something to run at that time.
    pub(crate) fn is_awake(&self, now: Duration) -> bool {
        !self.rests.get()
            || self.awake.load(Ordering::Acquire)
            || self.until.get().is_some_and(|until| until <= now)
    }

    /// Runs a piece of its work, if there is one. If there is none it rests.
    pub(crate) fn run_one(&self) -> bool {
        self.rouse();
        let ran = self.run_loop.run_one();
        if !ran {
            let next = self.run_loop.next_timer();
            self.until.set(next.map(|shows| self.clock.passed_when(self.here.world.start(), shows)));
            self.rests.set(self.run_loop.doze());
        }
        ran
    }

    fn rouse(&self) {
        if self.rests.replace(false) {
            self.awake.store(false, Ordering::Release);
            self.run_loop.rouse();
        }
    }

    /// Runs what is left when its program has ended: letters to those who have gone.
    pub(crate) fn run_ready(&self) {
        self.rouse();
        self.run_loop.run_ready();
    }

    /// Stops its work without running it, after this.
    pub(crate) fn stop_unrun(&self, f: impl FnOnce()) {
        self.rouse();
        self.run_loop.stop_unrun(f);
    }

    /// While it rests: how much of the world's time has passed when its next timer is due.
    pub(crate) fn next_timer(&self) -> Option<Duration> {
        self.until.get()
    }
}

/// Those of a host, in one of its lives: they end with its program, and are let go of also if that is never run.
pub(crate) struct Services(Arc<IoShared>);

impl Services {
    pub(crate) fn context(&self) -> &Context {
        self.0.services()
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        // What a service throws has been reported by the panic hook.
        let _ = convoke_core::Panic::catch(|| self.context().end());
    }
}
