//! The environment of a piece of work: the executor, the stop token, the frame allocator and the locals that
//! it was started with. The launch of a chain creates and owns it; everything below borrows it.
//!
//! # Protocol
//! - An environment does not change. [`Env::with`] makes a changed copy, [`Env::child`] the copy for work
//!   with a life of its own.
//! - An operation that changes something for its children borrows the rest:
//!   [`ScopedEnv`].
//! - A part of a task changes something for what runs in it by an [`Overlay`], which its poll frame refers to.
//! - Any thread may read an environment.

#![allow(unsafe_code)]

mod changes;
mod local;
mod overlay;
mod scoped;

pub use crate::frames::FrameAllocator;
pub use changes::Changes;
pub use local::Local;
pub use overlay::Overlay;
pub use scoped::ScopedEnv;

use core::fmt;
use core::ptr::NonNull;

use crate::out_of_line::{DropOutOfLine, LastUse, OutOfLine};
use crate::stop::{InPlaceStop, StopRef, StopToken};
use crate::{Executor, ExecutorRef};
use local::Locals;

/// The surroundings of a piece of work: executor, stop token, frame allocator, locals. It is
/// passed down from parent to child without being named in any signature. A receiver and the sender
/// `read_env` return it.
///
/// ```
/// use convoke::env::{Changes, Local};
/// use convoke::env::Env;
/// use convoke::StopSource;
///
/// static REQUEST_ID: Local<u64> = Local::inherited("request id");
///
/// let source = StopSource::new();
/// let changes = Changes::new().stop_token(source.token()).local(&REQUEST_ID, 7);
/// let env = Env::new().with(changes);
/// assert_eq!(env.local(&REQUEST_ID), Some(&7));
/// assert!(env.stop().stop_possible());
/// ```
pub struct Env {
    parts: OutOfLine<Parts>,
}

struct Parts {
    executor: ExecutorRef,
    stop: EnvStop,
    allocator: FrameAllocator,
    locals: Locals,
}

/// A token of its own, or the address of a source inside an operation that is above this environment and
/// outlives it.
enum EnvStop {
    Owned(StopToken),
    InPlace(NonNull<InPlaceStop>),
}

// SAFETY: an `InPlaceStop` is `Sync`, and `ScopedEnv::with_in_place_stop`, which stores its address, requires
// that it outlives the environment.
unsafe impl Send for EnvStop {}
// SAFETY: an `InPlaceStop` is `Sync`, and a shared `EnvStop` gives out only shared references to it.
unsafe impl Sync for EnvStop {}

impl Env {
    /// Creates an environment without an executor of its own: work in it runs inline, on the thread that starts or
    /// wakes it. It never stops, and has no locals. Work in it that waits for a time panics, because no thread
    /// could run it then. For tasks, use `Env::from(executor)`.
    pub fn new() -> Self {
        Self::on(ExecutorRef::default())
    }

    /// Creates an environment that runs work on `executor`, never stops, and has no locals. Its frame allocator is
    /// that of the executor's context.
    #[inline]
    pub fn on(executor: ExecutorRef) -> Self {
        Self::of(Parts {
            allocator: executor.allocator(),
            executor,
            stop: EnvStop::Owned(StopToken::never()),
            locals: Locals::EMPTY,
        })
    }

    #[inline]
    fn of(parts: Parts) -> Self {
        Self { parts: OutOfLine::new(parts) }
    }

    /// Returns the executor that the work runs on.
    #[inline]
    pub fn executor(&self) -> &ExecutorRef {
        &self.parts.executor
    }

    /// Borrows the stop token: to check it, or to register a callback for as long as the work lasts.
    #[inline]
    pub fn stop(&self) -> StopRef<'_> {
        match &self.parts.stop {
            EnvStop::Owned(token) => token.as_ref(),
            // SAFETY: `ScopedEnv::with_in_place_stop` requires that the source outlives this environment and
            // does not move.
            EnvStop::InPlace(stop) => unsafe { stop.as_ref().token() },
        }
    }

    /// Returns an owned stop token.
    pub fn stop_token(&self) -> StopToken {
        self.stop().to_token_in(self.allocator())
    }

    /// Returns the allocator for the frames of tasks below.
    #[inline]
    pub fn allocator(&self) -> &FrameAllocator {
        &self.parts.allocator
    }

    /// Returns the value of a key, if it was set here or, for an inherited key, above.
    pub fn local<T: Send + Sync + 'static>(&self, key: &'static Local<T>) -> Option<&T> {
        self.parts.locals.get(key)
    }

    /// Creates a copy of this environment with some changes.
    pub fn with(&self, changes: Changes) -> Self {
        let mut env = self.clone();
        changes.apply(&mut env);
        env
    }

    /// Creates a copy of this environment with the allocator and the locals of a part of a task.
    pub fn overlaid(&self, overlay: &Overlay) -> Self {
        let mut env = self.copy(overlay.locals.clone());
        env.parts.allocator = overlay.allocator.clone();
        env
    }

    /// Creates the environment of work that is started below this one and has a life of its own: without the
    /// keys that are not inherited. Copies four handles.
    pub fn child(&self) -> Self {
        self.copy(self.parts.locals.child())
    }
}

impl Env {
    /// Copies all but the locals.
    fn copy(&self, locals: Locals) -> Self {
        Self::of(Parts {
            executor: self.parts.executor.clone(),
            stop: EnvStop::Owned(self.stop_token()),
            allocator: self.parts.allocator.clone(),
            locals,
        })
    }
}

impl DropOutOfLine for Parts {
    #[inline(never)]
    fn drop_out_of_line(parts: LastUse<'_, Self>) {
        parts.drop_here();
    }
}

impl Clone for Env {
    fn clone(&self) -> Self {
        self.copy(self.parts.locals.clone())
    }
}

impl Default for Env {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Executor> From<E> for Env {
    fn from(executor: E) -> Self {
        Self::on(ExecutorRef::new(executor))
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("executor", self.executor())
            .field("stop", &self.stop().reason())
            .field("deadline", &self.stop().deadline())
            .field("locals", &self.parts.locals)
            .finish_non_exhaustive()
    }
}
