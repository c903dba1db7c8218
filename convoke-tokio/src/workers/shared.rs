//! The state that the handles and the runners of a [`Workers`](super::Workers) share: the queue, and the idle runners.

use core::cell::Cell;
use core::task::Waker;
use std::sync::{Arc, PoisonError};

use convoke_core::Executor;
use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{RunQueue, Runnable, Timers, discard, wake};
use convoke_exec::RunLoopExecutor;
use tokio::runtime::Handle;

pub(super) struct SharedWorkers {
    state: Mutex<WorkersState>,
    runtime: Handle,
    runners: usize,
    /// The executor of the loop whose timers these are: rule 3.
    clock: RunLoopExecutor,
}

struct WorkersState {
    queue: RunQueue,
    /// The runners that have no work, by their numbers: rule 2.
    idle: Vec<(usize, Waker)>,
    /// The waker of the clock, to tell it of the end.
    clock: Option<Waker>,
    /// Number of runners that were not dropped.
    alive: usize,
    closed: bool,
}

/// Next step of a runner.
pub(super) enum Turn {
    Run(Runnable),
    /// There is no work, and the runner is in the list of idle ones.
    Wait,
    End,
}

thread_local! {
    /// The address of the executor whose runner this thread polls. Only compared.
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

/// Proof that this thread polls a runner. Dropping it restores what was before.
pub(super) struct RunsHere(usize);

impl Drop for RunsHere {
    fn drop(&mut self) {
        RUNS.set(self.0);
    }
}

impl SharedWorkers {
    pub(super) fn new(runtime: &Handle, clock: RunLoopExecutor) -> Arc<Self> {
        let runners = runtime.metrics().num_workers();
        let idle = Vec::with_capacity(runners);
        let state = WorkersState { queue: RunQueue::new(), idle, clock: None, alive: runners, closed: false };
        Arc::new(Self { state: Mutex::new(state), runtime: runtime.clone(), runners, clock })
    }

    fn lock(&self) -> MutexGuard<'_, WorkersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn runners(&self) -> usize {
        self.runners
    }

    pub(super) fn timers(&self) -> Option<&dyn Timers> {
        self.clock.timers()
    }

    /// Returns true if this thread polls one of the runners.
    pub(super) fn runs_here(&self) -> bool {
        RUNS.get() == core::ptr::from_ref(self).addr()
    }

    /// Marks this thread as polling one of the runners.
    pub(super) fn enter(&self) -> RunsHere {
        RunsHere(RUNS.replace(core::ptr::from_ref(self).addr()))
    }

    pub(super) fn post(&self, runnable: Runnable) {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            return runnable.stop();
        }
        state.queue.push(runnable);
        let idle = state.idle.pop();
        drop(state);
        self.wake_runner(idle);
    }

    /// Begins a poll of the runner: it is not idle.
    pub(super) fn is_awake(&self, number: usize) {
        let mut state = self.lock();
        let index = state.idle.iter().position(|(idle, _)| *idle == number);
        let before = index.map(|index| state.idle.swap_remove(index));
        drop(state);
        before.into_iter().for_each(|(_, waker)| discard(waker));
    }

    /// Takes a piece of work for the runner; or puts it into the list of idle ones.
    pub(super) fn turn(&self, number: usize, waker: &Waker) -> Turn {
        let mut state = self.lock();
        let mut next = state.queue.pop();
        if next.is_none() && !state.closed {
            // Cloned without the lock: a clone may run foreign code.
            drop(state);
            let waker = waker.clone();
            state = self.lock();
            next = state.queue.pop();
            if next.is_none() && !state.closed {
                state.idle.push((number, waker));
                return Turn::Wait;
            }
            let more = self.share(state);
            discard(waker);
            self.wake_runner(more);
        } else {
            let more = self.share(state);
            self.wake_runner(more);
        }
        next.map_or(Turn::End, Turn::Run)
    }

    /// Returns an idle runner to wake, if there is more work: rule 1.
    fn share(&self, mut state: MutexGuard<'_, WorkersState>) -> Option<(usize, Waker)> {
        if state.queue.is_empty() { None } else { state.idle.pop() }
    }

    /// Wakes a runner. A task that is woken by a worker of tokio's waits in a slot of that worker from which
    /// no other worker takes it, until the work that runs there has returned; and that may wait for just this.
    /// Another task that is scheduled pushes it out of the slot, to where all can take it.
    fn wake_runner(&self, idle: Option<(usize, Waker)>) {
        let Some((_, waker)) = idle else { return };
        wake(waker);
        if self.runners > 1 && Handle::try_current().is_ok_and(|here| here.id() == self.runtime.id()) {
            drop(self.runtime.spawn(core::future::ready(())));
        }
    }

    /// Returns true if it is closed. If not, stores the waker of the clock.
    pub(super) fn clock_ends(&self, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut state = self.lock();
        let closed = state.closed;
        let unused = if closed { Some(waker) } else { state.clock.replace(waker) };
        drop(state);
        unused.into_iter().for_each(discard);
        closed
    }

    /// Counts a runner that was dropped. The last one closes: rule 4.
    pub(super) fn runner_ended(&self) {
        let mut state = self.lock();
        state.alive -= 1;
        let was_last = state.alive == 0;
        drop(state);
        if was_last {
            self.close();
        }
    }

    /// Stops what is queued, and all that is posted later: rule 4.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let queue = core::mem::take(&mut state.queue);
        let (idle, clock) = (core::mem::take(&mut state.idle), state.clock.take());
        drop(state);
        // Stops the work, in order.
        drop(queue);
        idle.into_iter().map(|(_, waker)| waker).chain(clock).for_each(wake);
    }
}
