//! The changes that hold for a part of a task: what a poll frame puts over the environment of its task. They lie in
//! the future that runs in them; what is started inside and may outlive the future copies them.

use core::fmt;

use super::local::Locals;
use super::{Changes, Env, FrameAllocator, Local};

/// The frame allocator and the locals of a part of a task. They replace those of the task's environment; the
/// executor stays that of the task.
pub struct Overlay {
    pub(super) allocator: FrameAllocator,
    pub(super) locals: Locals,
}

impl Overlay {
    /// Creates the overlay of a part inside of `around`, or directly in a task with this environment. An
    /// executor and a stop token in `changes` are ignored: a part of a task has that executor, and a region of
    /// its own for the stop.
    pub fn new(env: &Env, around: Option<&Self>, mut changes: Changes) -> Self {
        let (allocator, locals) = match around {
            Some(around) => (&around.allocator, &around.locals),
            None => (&env.parts.allocator, &env.parts.locals),
        };
        let allocator = changes.parts.allocator.take().unwrap_or_else(|| allocator.clone());
        let mut locals = locals.clone();
        locals.put_on_top(core::mem::replace(&mut changes.parts.locals, Locals::EMPTY));
        Self { allocator, locals }
    }

    /// Returns the allocator for the frames of tasks below.
    pub fn allocator(&self) -> &FrameAllocator {
        &self.allocator
    }

    /// Returns the value of a key, if it was set here or around.
    pub fn local<T: Send + Sync + 'static>(&self, key: &'static Local<T>) -> Option<&T> {
        self.locals.get(key)
    }
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").field("allocator", &self.allocator).field("locals", &self.locals).finish()
    }
}
