//! The duties of an executor that wraps another one. To forget them breaks nothing at once: tasks find no socket driver,
//! timers are served by another thread, a context ends before its work.

use core::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use convoke_core::frames::Bounded;
use convoke_core::raw::{Runnable, Timers};
use convoke_core::{Executor, FrameAllocator};
use convoke_exec::RunLoopExecutor;

/// An executor that is recognised by what it returns.
#[derive(Clone, Debug)]
pub struct WrappedExecutor(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// Has timers. It never runs.
    run_loop: RunLoopExecutor,
    allocator: FrameAllocator,
    /// Calls of `work_began`, less those of `work_ended`.
    work: AtomicIsize,
}

impl WrappedExecutor {
    pub(super) fn new() -> Self {
        let (run_loop, allocator) = (RunLoopExecutor::new(), FrameAllocator::new(Bounded::new(0)));
        Self(Arc::new(Parts { run_loop, allocator, work: AtomicIsize::new(0) }))
    }

    /// Checks that `wrapper`, which wraps this executor, passes on all that a wrapper must.
    pub(super) fn check<W: Executor>(&self, wrapper: &W) {
        let name = core::any::type_name::<W>();
        let address =
            |timers: Option<&dyn Timers>| timers.map(|timers| core::ptr::from_ref(timers).cast::<()>());
        assert_eq!(
            address(wrapper.timers()),
            address(self.timers()),
            "`{name}` does not return the `timers` of the executor it wraps: implement `Executor::wraps`"
        );
        let context = wrapper.context().and_then(|context| context.downcast_ref::<Parts>());
        assert!(
            context.is_some_and(|context| core::ptr::eq(context, Arc::as_ptr(&self.0))),
            "`{name}` does not return the `context` of the executor it wraps: implement `Executor::wraps`"
        );
        assert!(
            wrapper.allocator() == self.0.allocator,
            "`{name}` does not return the `allocator` of the executor it wraps: implement `Executor::wraps`"
        );
        let work = |expected, function| {
            let now = self.0.work.load(Ordering::Relaxed);
            assert_eq!(now, expected, "`{name}` does not pass `{function}` on: implement `Executor::wraps`");
        };
        wrapper.work_began();
        work(1, "work_began");
        wrapper.work_ended();
        work(0, "work_ended");
    }
}

impl PartialEq for WrappedExecutor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Executor for WrappedExecutor {
    /// Stops the work: nothing runs here.
    fn post(&self, runnable: Runnable) {
        runnable.stop();
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.0.run_loop.timers()
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(&*self.0)
    }

    fn allocator(&self) -> FrameAllocator {
        self.0.allocator.clone()
    }

    fn work_began(&self) {
        self.0.work.fetch_add(1, Ordering::Relaxed);
    }

    fn work_ended(&self) {
        self.0.work.fetch_sub(1, Ordering::Relaxed);
    }
}
