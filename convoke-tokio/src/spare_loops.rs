//! Loops of a thread that no chain uses at the moment. A loop that is used again allocates nothing: above all, no table of
//! timers, which is 16 KiB; and a [`RunLoop`] uses up no number of an owner thread: there are 2^32 of those.

use core::cell::RefCell;
use std::sync::Arc;
use std::thread::LocalKey;

use convoke_exec::RunLoop;
use convoke_exec::raw::EmbeddedLoop;

use crate::pump::{Pump, StepLoop};
use crate::task_waker::TaskWaker;

/// Largest number of spare loops of a kind that a thread keeps.
const SPARE_LOOPS: usize = 16;

type Spares<L> = RefCell<Vec<Pump<L>>>;

thread_local! {
    static RUN_LOOPS: Spares<RunLoop> = const { RefCell::new(Vec::new()) };
    static EMBEDDED_LOOPS: Spares<EmbeddedLoop> = const { RefCell::new(Vec::new()) };
}

/// A loop that chains use one after the other.
pub(crate) trait ReusableLoop: StepLoop + Sized + 'static {
    /// Creates a loop that wakes this task.
    fn over(task: Arc<TaskWaker>) -> Self;

    /// Returns true if there is no other handle of the loop, and it has neither work nor timers.
    fn is_unused(&self) -> bool;

    /// Returns the spare loops of the thread.
    fn spares() -> &'static LocalKey<Spares<Self>>;
}

impl ReusableLoop for RunLoop {
    fn over(task: Arc<TaskWaker>) -> Self {
        Self::over(task, None)
    }

    fn is_unused(&self) -> bool {
        self.is_unused() && !self.has_timers()
    }

    fn spares() -> &'static LocalKey<Spares<Self>> {
        &RUN_LOOPS
    }
}

impl ReusableLoop for EmbeddedLoop {
    fn over(task: Arc<TaskWaker>) -> Self {
        Self::over(task, None)
    }

    fn is_unused(&self) -> bool {
        self.is_unused()
    }

    fn spares() -> &'static LocalKey<Spares<Self>> {
        &EMBEDDED_LOOPS
    }
}

/// Takes a spare loop of this thread, or creates one.
pub(crate) fn take<L: ReusableLoop>() -> Pump<L> {
    let spare = L::spares().try_with(|spares| spares.borrow_mut().pop()).ok().flatten();
    spare.unwrap_or_else(|| {
        let task = Arc::new(TaskWaker::default());
        Pump::over(L::over(task.clone()), task)
    })
}

/// Takes a loop back, if nothing else can reach it and there are not many.
pub(crate) fn give_back<L: ReusableLoop>(pump: Pump<L>) {
    if !pump.run_loop.is_unused() {
        return;
    }
    let mut pump = Some(pump.idle());
    let _ = L::spares().try_with(|spares| {
        let mut spares = spares.borrow_mut();
        if spares.len() < SPARE_LOOPS {
            spares.extend(pump.take());
        }
    });
}
