//! The timers of executors that bring none: one thread for the whole process, started when it is first asked for. It
//! calls timers and sleeps; work goes back to its own executor before anything of the program's runs.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Instant;

use convoke_core::raw::{Timer, Timers};

use super::queue::{AfterArm, TimerQueue};

struct Fallback {
    queue: Arc<TimerQueue>,
    thread: Thread,
}

pub(super) fn timers() -> &'static dyn Timers {
    static FALLBACK: OnceLock<Fallback> = OnceLock::new();
    FALLBACK.get_or_init(|| {
        let queue = Arc::new(TimerQueue::new());
        let shared = queue.clone();
        let thread = thread::Builder::new()
            .name("convoke-timers".into())
            .spawn(move || serve(&shared))
            .expect("a thread for timers");
        Fallback { queue, thread: thread.thread().clone() }
    })
}

/// Calls what is due and sleeps until the next, for ever. A wake-up that comes while it is awake is kept by the thread,
/// so none is lost.
fn serve(queue: &TimerQueue) {
    loop {
        match queue.next_look() {
            None => thread::park(),
            Some(at) => match at.saturating_duration_since(Instant::now()) {
                left if left.is_zero() => _ = queue.call_due(Instant::now()),
                left => thread::park_timeout(left),
            },
        }
    }
}

// SAFETY: the queue keeps the contract; it is never given up.
unsafe impl Timers for Fallback {
    fn now(&self) -> Instant {
        Instant::now()
    }

    unsafe fn arm(&self, timer: NonNull<Timer>, at: Instant) {
        // SAFETY: the caller's.
        if unsafe { self.queue.arm(timer, at) } == AfterArm::IsEarliest {
            self.thread.unpark();
        }
    }

    unsafe fn disarm(&self, timer: NonNull<Timer>) -> bool {
        // SAFETY: the caller's.
        unsafe { self.queue.disarm(timer) }
    }
}
