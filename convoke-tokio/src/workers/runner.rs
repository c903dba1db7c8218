//! The tokio tasks of a [`Workers`](super::Workers): the runners, and the clock.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use convoke_core::raw::{contain, report_panic};
use convoke_exec::raw::EmbeddedLoop;
use tokio::runtime::Handle;
use tokio::task::coop::has_budget_remaining;

use super::shared::{SharedWorkers, Turn};
use crate::pump::{PIECES_PER_POLL, Pump, yield_task};
use crate::spare_loops;

/// Starts the runners and the clock as tasks of the runtime.
pub(super) fn start(runtime: &Handle) -> Arc<SharedWorkers> {
    let pump = spare_loops::take::<EmbeddedLoop>();
    let shared = SharedWorkers::new(runtime, pump.run_loop.executor());
    drop(runtime.spawn(Clock { shared: shared.clone(), pump }));
    for number in 0..shared.runners() {
        drop(runtime.spawn(Runner { shared: shared.clone(), number }));
    }
    shared
}

/// Runs work of the queue.
struct Runner {
    shared: Arc<SharedWorkers>,
    number: usize,
}

impl Future for Runner {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = &self.shared;
        let _runs_here = shared.enter();
        shared.is_awake(self.number);
        for _ in 0..PIECES_PER_POLL {
            if !has_budget_remaining() {
                break;
            }
            match shared.turn(self.number, cx.waker()) {
                // Tasks catch their panics; a piece of work of another kind may not.
                Turn::Run(runnable) => _ = contain(report_panic, || runnable.run()),
                Turn::Wait => return Poll::Pending,
                Turn::End => return Poll::Ready(()),
            }
        }
        yield_task(cx);
        Poll::Pending
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        contain(report_panic, || self.shared.runner_ended());
    }
}

/// Calls the timers. When it is dropped, they are called with a stop.
struct Clock {
    shared: Arc<SharedWorkers>,
    pump: Pump<EmbeddedLoop>,
}

impl Future for Clock {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { shared, pump } = &mut *self;
        let ends = shared.clock_ends(cx.waker());
        pump.poll(cx, || ends)
    }
}
