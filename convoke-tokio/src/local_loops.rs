//! Run loops of a thread that no chain uses at the moment. A loop that is used again allocates nothing, and uses up
//! no number of an owner thread: there are 2^32 of those.

use core::cell::RefCell;
use std::sync::Arc;

use convoke_exec::RunLoop;

use crate::pump::Pump;
use crate::task_waker::TaskWaker;

/// Largest number of unused loops of a thread.
const UNUSED_LOOPS: usize = 16;

thread_local! {
    static UNUSED: RefCell<Vec<Pump<RunLoop>>> = const { RefCell::new(Vec::new()) };
}

/// Takes a loop, or creates one.
pub(crate) fn take() -> Pump<RunLoop> {
    let unused = UNUSED.try_with(|unused| unused.borrow_mut().pop()).ok().flatten();
    unused.unwrap_or_else(|| {
        let task = Arc::new(TaskWaker::default());
        Pump::over(RunLoop::over(task.clone(), None), task)
    })
}

/// Takes a loop back, if nothing else can reach it and there are not many.
pub(crate) fn give_back(pump: Pump<RunLoop>) {
    if !pump.run_loop.is_unused() || pump.run_loop.has_timers() {
        return;
    }
    let mut pump = Some(pump.idle());
    let _ = UNUSED.try_with(|unused| {
        let mut unused = unused.borrow_mut();
        if unused.len() < UNUSED_LOOPS {
            unused.extend(pump.take());
        }
    });
}
