//! The changes to an environment that a caller asks for.

use core::fmt;
use core::mem;

use super::local::Locals;
use super::{Env, EnvStop, FrameAllocator, Local};
use crate::out_of_line::{DropOutOfLine, LastUse, OutOfLine};
use crate::stop::StopToken;
use crate::{Executor, ExecutorRef};

/// A set of changes to an environment, for [`Env::with`] and the adaptors `with_env` and `write_env`.
#[must_use = "changes do nothing until an environment is made with them"]
pub struct Changes {
    pub(super) parts: OutOfLine<ChangedParts>,
}

pub(super) struct ChangedParts {
    pub(super) executor: Option<ExecutorRef>,
    pub(super) stop: Option<StopToken>,
    pub(super) allocator: Option<FrameAllocator>,
    /// The values that are set, the newest first. No other environment shares them.
    pub(super) locals: Locals,
}

impl Changes {
    /// Creates an empty set.
    pub const fn new() -> Self {
        let parts = ChangedParts { executor: None, stop: None, allocator: None, locals: Locals::EMPTY };
        Self { parts: OutOfLine::new(parts) }
    }

    /// Changes the executor. An executor whose type is erased already is used as it is.
    pub fn executor<E: Executor>(mut self, executor: E) -> Self {
        self.parts.executor = Some(ExecutorRef::new(executor));
        self
    }

    /// Changes the stop token. To still stop with the parent, give the token of a child of the parent's
    /// source.
    pub fn stop_token(mut self, token: StopToken) -> Self {
        self.parts.stop = Some(token);
        self
    }

    /// Changes the frame allocator.
    pub fn allocator(mut self, allocator: FrameAllocator) -> Self {
        self.parts.allocator = Some(allocator);
        self
    }

    /// Sets the value of a key, which lies in memory of this allocator.
    pub(crate) fn local_in<T: Send + Sync + 'static>(
        mut self,
        allocator: &FrameAllocator,
        key: &'static Local<T>,
        value: T,
    ) -> Self {
        self.parts.locals.set(allocator, key, value);
        self
    }

    /// Returns the new executor, if it changes.
    pub fn new_executor(&self) -> Option<&ExecutorRef> {
        self.parts.executor.as_ref()
    }

    /// Returns the new frame allocator, if it changes.
    pub fn new_allocator(&self) -> Option<&FrameAllocator> {
        self.parts.allocator.as_ref()
    }

    pub(super) fn apply(mut self, env: &mut Env) {
        let (parts, env) = (&mut self.parts, &mut env.parts);
        if let Some(executor) = parts.executor.take() {
            env.executor = executor;
        }
        if let Some(stop) = parts.stop.take() {
            env.stop = EnvStop::Owned(stop);
        }
        if let Some(allocator) = parts.allocator.take() {
            env.allocator = allocator;
        }
        env.locals.put_on_top(mem::replace(&mut parts.locals, Locals::EMPTY));
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self::new()
    }
}

impl DropOutOfLine for ChangedParts {
    #[inline(never)]
    fn drop_out_of_line(parts: LastUse<'_, Self>) {
        parts.drop_here();
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("executor", &self.parts.executor)
            .field("stop", &self.parts.stop)
            .field("allocator", &self.parts.allocator)
            .field("locals", &self.parts.locals)
            .finish()
    }
}
