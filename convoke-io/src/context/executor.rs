//! `IoExecutor`: the handle of an I/O context.

use core::any::Any;

use convoke_core::raw::{OwnerThread, Runnable, Timers};
use convoke_core::{Executor, ExecutorRef, FrameAllocator};
use convoke_exec::RunLoopExecutor;
use convoke_task::Context;

use super::IoShared;

/// The handle of an [`IoContext`](super::IoContext). It is one word, cheap to clone, and stays valid after
/// the context has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoExecutor(RunLoopExecutor);

impl IoExecutor {
    pub(super) fn new(executor: RunLoopExecutor) -> Self {
        Self(executor)
    }

    /// Returns the services of the context. After the context has ended there are none, and none can be
    /// created.
    pub fn services(&self) -> &Context {
        self.shared().services()
    }

    /// Stops the context from any thread: its [`run`](super::IoContext::run) returns soon, with work left.
    /// See [`IoContext::stop`](super::IoContext::stop).
    ///
    /// ```
    ///
    /// let context = convoke::driver::io_context().unwrap();
    /// let (executor, work) = (context.executor(), context.work());
    /// let elsewhere = std::thread::spawn(move || executor.stop());
    /// context.run(); // There is `work`, but `stop` ends the call.
    /// elsewhere.join().unwrap();
    /// drop(work);
    /// ```
    pub fn stop(&self) {
        self.shared().stop();
    }

    fn shared(&self) -> &IoShared {
        let shared = self.0.context().and_then(|context| context.downcast_ref::<IoShared>());
        shared.expect("the run loop of an I/O context has an `IoShared` as its context")
    }
}

#[diagnostic::do_not_recommend]
impl Executor for IoExecutor {
    const QUEUES_LOCALLY: bool = true;

    // Compiled once, with the table of its functions.
    #[inline(never)]
    fn erased(self) -> ExecutorRef {
        ExecutorRef::erase(self)
    }

    #[inline]
    fn post(&self, runnable: Runnable) {
        self.0.post(runnable);
    }

    #[inline]
    fn post_last(self, runnable: Runnable) {
        self.0.post_last(runnable);
    }

    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        self.0.dispatch(runnable)
    }

    #[inline]
    fn owner_thread(&self) -> Option<&OwnerThread> {
        self.0.owner_thread()
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.0.timers()
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.0.context()
    }

    fn allocator(&self) -> FrameAllocator {
        self.0.allocator()
    }

    fn work_began(&self) {
        self.0.work_began();
    }

    fn work_ended(&self) {
        self.0.work_ended();
    }
}
