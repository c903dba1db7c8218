//! The timers for executors that have none: one thread for the whole process, started on first use. It only
//! calls timers and sleeps; their calls post work to its own executor before any user code runs.

#![allow(unsafe_code)]

use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Instant;

use convoke_core::raw::{ArmedTimer, IdleTimer, Timers};
use convoke_core::{ExecutorRef, InlineExecutor};

use super::queue::{AfterArm, TimerQueue};
use crate::start_thread::start_thread;

struct Fallback {
    queue: Arc<TimerQueue>,
    thread: Thread,
}

/// Returns the timers of the process. Starts their thread on the first call.
pub(super) fn timers() -> &'static dyn Timers {
    static FALLBACK: OnceLock<Fallback> = OnceLock::new();
    FALLBACK.get_or_init(|| {
        let queue = Arc::new(TimerQueue::new());
        let shared = queue.clone();
        let thread = start_thread("convoke-timers".into(), None, Box::new(move || serve(&shared)))
            .expect("cannot start the thread `convoke-timers`");
        Fallback { queue, thread: thread.thread().clone() }
    })
}

/// Returns the timers of the process, for work on this executor.
///
/// # Panics
/// If the executor is the inline one: the thread of the timers would run the work.
pub(super) fn timers_for(executor: &ExecutorRef) -> &'static dyn Timers {
    assert!(
        !executor.is(&InlineExecutor),
        "work without an executor cannot wait for a time: it was started in `Env::new()`, or on the `InlineExecutor`, \
         and would go on on the thread of the timers. Start it with `block_on`, with `launch(&executor)`, or in \
         `Env::from(executor)`"
    );
    timers()
}

/// Calls due timers and sleeps until the next one, for ever. An `unpark` that comes while the thread is awake
/// ends its next sleep, so none is lost.
fn serve(queue: &TimerQueue) {
    loop {
        match queue.next_check() {
            None => thread::park(),
            Some(at) => match at.saturating_duration_since(Instant::now()) {
                left if left.is_zero() => _ = queue.call_due(Instant::now()),
                left => thread::park_timeout(left),
            },
        }
    }
}

// SAFETY: the queue keeps the contract of `Timers`. It is in a static, so it is never closed or dropped.
unsafe impl Timers for Fallback {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn arm(&self, timer: IdleTimer, at: Instant) {
        if self.queue.arm(timer, at) == AfterArm::IsEarliest {
            self.thread.unpark();
        }
    }

    fn disarm(&self, timer: ArmedTimer) -> bool {
        self.queue.disarm(timer)
    }
}
