//! The changes to an environment that a caller asks for.

use core::fmt;

use super::local::Entry;
use super::{Env, EnvStop, FrameAllocator, Local};
use crate::stop::StopToken;
use crate::{Executor, ExecutorRef};

/// A set of changes to an environment, for [`Env::with`] and the adaptors `with_env` and `write_env`.
#[derive(Default)]
#[must_use = "changes do nothing until an environment is made with them"]
pub struct Changes {
    pub(super) executor: Option<ExecutorRef>,
    pub(super) stop: Option<StopToken>,
    pub(super) allocator: Option<FrameAllocator>,
    pub(super) locals: Vec<Entry>,
}

impl Changes {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self { executor: None, stop: None, allocator: None, locals: Vec::new() }
    }

    /// Changes the executor. An executor whose type is erased already is used as it is.
    pub fn executor<E: Executor>(mut self, executor: E) -> Self {
        self.executor = Some(ExecutorRef::new(executor));
        self
    }

    /// Changes the stop token. To still stop with the parent, give the token of a child of the parent's
    /// source.
    pub fn stop_token(mut self, token: StopToken) -> Self {
        self.stop = Some(token);
        self
    }

    /// Changes the frame allocator.
    pub fn allocator(mut self, allocator: FrameAllocator) -> Self {
        self.allocator = Some(allocator);
        self
    }

    /// Sets the value of a key.
    pub fn local<T: Send + Sync + 'static>(mut self, key: &'static Local<T>, value: T) -> Self {
        self.locals.push(Entry::new(key, value));
        self
    }

    /// Returns the new executor, if it changes.
    pub fn new_executor(&self) -> Option<&ExecutorRef> {
        self.executor.as_ref()
    }

    pub(super) fn apply(self, env: &mut Env) {
        if let Some(executor) = self.executor {
            env.executor = executor;
        }
        if let Some(stop) = self.stop {
            env.stop = EnvStop::Owned(stop);
        }
        if let Some(allocator) = self.allocator {
            env.allocator = allocator;
        }
        for entry in self.locals {
            env.locals.push(entry);
        }
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("executor", &self.executor)
            .field("stop", &self.stop)
            .field("allocator", &self.allocator)
            .field("locals", &self.locals.len())
            .finish()
    }
}
