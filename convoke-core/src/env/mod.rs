//! The environment of a piece of work: where it runs, who may stop it, where its frames live, and what else was
//! said to it. It is owned by whoever launched the chain and borrowed by everything below.

#![allow(unsafe_code)]

mod changes;
mod local;
mod scoped;

pub use crate::frames::FrameAllocator;
pub use changes::Changes;
pub use local::Local;
pub use scoped::ScopedEnv;

use core::fmt;
use core::ptr::NonNull;

use crate::stop::{InPlaceStop, StopRef, StopToken};
use crate::{Executor, ExecutorRef};
use local::Locals;

/// What work can ask about its surroundings. It travels down, invisibly: [`Receiver::env`](crate::Receiver::env)
/// and the sender [`read_env`](crate::prelude::read_env) hand it out.
///
/// ```
/// use convoke::env::{Changes, Env, Local};
/// use convoke::StopSource;
///
/// static REQUEST_ID: Local<u64> = Local::inherited("request id");
///
/// let source = StopSource::new();
/// let env = Env::new().with(Changes::new().stop_token(source.token()).local(&REQUEST_ID, 7));
/// assert_eq!(env.local(&REQUEST_ID), Some(&7));
/// assert!(env.stop().stop_possible());
/// ```
pub struct Env {
    executor: ExecutorRef,
    stop: EnvStop,
    allocator: FrameAllocator,
    locals: Locals,
}

/// A token of one's own, or the address of a source inside an operation that is above us and outlives us.
enum EnvStop {
    Owned(StopToken),
    InPlace(NonNull<InPlaceStop>),
}

// SAFETY: a source in place is `Sync`, and whoever put its address here promised that it outlives us.
unsafe impl Send for EnvStop {}
// SAFETY: as above.
unsafe impl Sync for EnvStop {}

impl Env {
    /// An environment that runs inline, never stops, and knows nothing else.
    pub fn new() -> Self {
        Self::on(ExecutorRef::default())
    }

    /// An environment that runs here, never stops, and knows nothing else.
    #[inline]
    pub fn on(executor: ExecutorRef) -> Self {
        Self {
            executor,
            stop: EnvStop::Owned(StopToken::never()),
            allocator: FrameAllocator::recycling(),
            locals: Locals::EMPTY,
        }
    }

    /// The executor that the work runs on.
    #[inline]
    pub fn executor(&self) -> &ExecutorRef {
        &self.executor
    }

    /// The stop token, borrowed: for a look, or to register a callback for as long as the work lasts.
    #[inline]
    pub fn stop(&self) -> StopRef<'_> {
        match &self.stop {
            EnvStop::Owned(token) => token.as_ref(),
            // SAFETY: whoever made this environment promised that the source outlives it, and stays where it is.
            EnvStop::InPlace(stop) => unsafe { stop.as_ref().token() },
        }
    }

    /// The stop token, to keep.
    pub fn stop_token(&self) -> StopToken {
        self.stop().to_token()
    }

    /// Where the frames of tasks below come from.
    #[inline]
    pub fn allocator(&self) -> &FrameAllocator {
        &self.allocator
    }

    /// The value of a key, if it was set here or, for a key that is inherited, above.
    pub fn local<T: Send + Sync + 'static>(&self, key: &'static Local<T>) -> Option<&T> {
        self.locals.get(key)
    }

    /// A copy of this environment with some things changed.
    pub fn with(&self, changes: Changes) -> Self {
        let mut env = self.clone();
        changes.apply(&mut env);
        env
    }

    /// The environment of work that is started below this one and has a life of its own: the keys that are not
    /// inherited are left behind. Nothing of the parent is copied but four handles.
    pub fn child(&self) -> Self {
        Self { locals: self.locals.child(), ..self.clone() }
    }
}

impl Clone for Env {
    fn clone(&self) -> Self {
        Self {
            executor: self.executor.clone(),
            stop: EnvStop::Owned(self.stop_token()),
            allocator: self.allocator.clone(),
            locals: self.locals.clone(),
        }
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
            .field("executor", &self.executor)
            .field("stop", &self.stop().reason())
            .field("deadline", &self.stop().deadline())
            .field("locals", &self.locals)
            .finish_non_exhaustive()
    }
}
