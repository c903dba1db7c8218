//! The concept `ExecutionContext` of P4003: it runs work and has services.

use convoke_core::{Executor, FrameAllocator};

use super::Context;

/// A context that runs work: it has an executor and services, and a frame allocator for what is launched on it. An I/O
/// context is one, and a [`PoolContext`](crate::PoolContext).
///
/// When it ends, its services end in order, and queued work completes as stopped.
///
/// ```
/// use convoke::executor::{ExecutionContext, PoolContext};
/// use convoke::prelude::*;
///
/// /// Starts a server in whatever context the program has chosen.
/// fn start(context: &impl ExecutionContext) -> u32 {
///     launch(&context.executor()).start(async { 42 }).wait().unwrap()
/// }
///
/// assert_eq!(start(&PoolContext::new(ThreadPool::builder().threads(1))?), 42);
/// # std::io::Result::Ok(())
/// ```
pub trait ExecutionContext {
    /// The executor that work is posted with.
    type Executor: Executor;

    /// Returns the executor.
    fn executor(&self) -> Self::Executor;

    /// Returns the services.
    fn services(&self) -> &Context;

    /// Returns the frame allocator of what is launched here and names none.
    fn allocator(&self) -> &FrameAllocator {
        self.services().allocator()
    }
}
