//! The frame allocator of a context is the default of all that is launched on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use convoke::Executor;
use convoke::alloc::FrameAllocator;
use convoke::driver::use_service;
use convoke::env::{Changes, Env, current};
use convoke::executor::{Context, ExecutionContext, FromContext, PoolContext, Service, Strand};
use convoke::prelude::*;
use convoke::run_on;
use convoke::runtime::Runtime;
use convoke_testing::workshop::frames::Frames;

/// Returns an allocator, and its counts.
fn frames() -> (FrameAllocator, Frames) {
    let frames = Frames::at_most(1000);
    (FrameAllocator::new(frames.clone()), frames)
}

/// Returns the allocator of the running task.
fn used() -> FrameAllocator {
    current::env(|env| env.unwrap().allocator().clone())
}

#[test]
fn what_is_launched_on_a_pool_lies_in_its_memory() {
    let (allocator, counts) = frames();
    let pool = ThreadPool::builder().threads(1).allocator(allocator.clone()).build().unwrap();
    let (executor, strand) = (pool.executor(), Strand::new(pool.executor()));
    assert_eq!(launch(&executor).start(async { used() }).wait().unwrap(), allocator);
    assert!(counts.counts().1 > 0);
    // Through a view, and for an environment that is made from the executor.
    assert_eq!(launch(&strand).start(async { used() }).wait().unwrap(), allocator);
    assert_eq!(Env::from(executor).allocator(), &allocator);
    // A launch that names one has that.
    let other = launch(&executor).allocator(FrameAllocator::system()).start(async { used() });
    assert_eq!(other.wait().unwrap(), FrameAllocator::system());
    // What runs below inherits, wherever it runs.
    let elsewhere = ThreadPool::new(1).unwrap();
    let there = elsewhere.executor();
    let below = launch(&executor).start(async move { run_on(&there, async { used() }).await });
    assert_eq!(below.wait().unwrap(), allocator);
    drop(pool);
    assert_eq!(
        executor.allocator(),
        FrameAllocator::default(),
        "the pool is gone, and its allocator with it"
    );
    assert_eq!(counts.counts().0, 0);
}

#[test]
fn contexts_and_pool_of_a_runtime_share_its_allocator() {
    let (allocator, _) = frames();
    let runtime =
        Runtime::builder().contexts(2).pool_threads(1).allocator(allocator.clone()).build().unwrap();
    assert_eq!(runtime.block_on(async { used() }).unwrap(), allocator);
    let other = runtime.block_on_with(Changes::new().allocator(FrameAllocator::system()), async { used() });
    assert_eq!(other.unwrap(), FrameAllocator::system());
    let handle = runtime.handle();
    for launched in [
        handle.launch(&runtime.contexts()[1]).start(async { used() }),
        handle.launch(&runtime.pool()).start(async { used() }),
    ] {
        assert_eq!(launched.wait().unwrap(), allocator);
    }
}

/// A service that says when it has closed.
struct Closes(Arc<AtomicBool>);

impl Service for Closes {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        checkpoint().await;
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A service that is made when it is first asked for.
struct Made;

impl Service for Made {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }
}

impl FromContext for Made {
    fn from_context(context: &Context) -> Self {
        assert!(context.executor().is_some(), "services run work on the pool");
        Self
    }
}

/// Returns whether a task on the context finds its services.
fn finds_services(context: &impl ExecutionContext) -> bool {
    let found = launch(&context.executor()).start(async { use_service::<Made>().is_ok() });
    found.wait().unwrap() && context.services().has_service::<Made>()
}

#[test]
fn a_pool_is_a_context_whose_tasks_find_its_services_and_which_closes_them() {
    let (allocator, _) = frames();
    let closed = Arc::new(AtomicBool::new(false));
    let builder = ThreadPool::builder().threads(1);
    let context = PoolContext::with_allocator(builder, allocator.clone()).unwrap();
    assert_eq!(ExecutionContext::allocator(&context), &allocator);
    assert_eq!(launch(&context.executor()).start(async { used() }).wait().unwrap(), allocator);
    assert!(finds_services(&context));
    let announces = closed.clone();
    context.services().make_service(|_| Closes(announces)).unwrap();
    drop(context);
    assert!(closed.load(Ordering::Relaxed), "the end of the pool waits for its services");
}

#[test]
fn an_io_context_is_a_context_too() {
    let context = convoke::driver::io_context().unwrap();
    let launched =
        launch(&ExecutionContext::executor(&context)).start(async { use_service::<Made>().is_ok() });
    context.run();
    assert_eq!(launched.wait(), Outcome::Value(true));
    assert!(ExecutionContext::services(&context).has_service::<Made>());
}
