//! Launching tasks from ordinary code: [`launch()`] on an executor, [`block_on()`] on the calling thread.
//!
//! A launched task is a *root*: it has no task above it. All that it awaits and spawns ends before it does,
//! and its [`Launched`] waits for it, so nothing is detached.

// `Launch` collects the options. `Launch::start` allocates a `Root`, which the task and the `Launched` share,
// and posts the task. When the task has left on the executor, and its memory is released, the handlers are
// called, the outcome is stored in the root, and the one waiter that there may be is told: a blocked thread, an
// operation (`launched.await`), or a task that dropped the `Launched`. `RootParent` is the parent of every root
// task: it owns the environment, and passes its stop token's request on to the task.
//
// | file | contents |
// | --- | --- |
// | `root_parent.rs` | the parent of a root task |
// | `root.rs`, `handlers.rs` | what a launched task and its waiter share; the handlers of a launch |
// | `launched.rs`, `join.rs` | the handle that waits; awaiting it in a task |
// | `block_on.rs` | running a root task on the calling thread |
// | `leaked_root.rs` | a root task that tests run step by step |

mod block_on;
mod handlers;
mod join;
mod launched;
#[cfg(feature = "testing")]
mod leaked_root;
mod root;
mod root_parent;

pub use block_on::{BlockOn, block_on, block_on_with};
#[doc(hidden)]
pub use block_on::{BoxedFuture, block_on_boxed};
pub use handlers::{Finish, NoHandlers, OnBoth, OnEnd, OnError, OnValue};
pub use join::AwaitLaunched;
#[doc(hidden)]
pub use join::JoinOperation;
pub use launched::Launched;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use leaked_root::{LeakedRoot, leak};

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::env::{Changes, Local};
use convoke_core::raw::{OwnerId, OwnerThread};
use convoke_core::{Env, Executor, ExecutorRef, FrameAllocator, Panic, StopToken};

use crate::task::Spawnable;
use crate::{Context, Stopped};
use handlers::Handlers;
use root::{Root, new_root};

/// Returns a builder for launching a root task on this executor; [`start`](Launch::start) launches it. For
/// ordinary code: `main`, a callback, a thread of a foreign library. In a task, open a
/// [`scope`](crate::scope()).
///
/// Use this if ordinary code starts work and goes on. Use [`block_on`](crate::block_on()) if it waits, and a
/// [`scope`](crate::scope()) in a task.
///
/// The task inherits nothing: every option that is not set has its default. All that runs below it inherits
/// the options.
///
/// ```
/// use convoke::prelude::*;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let launched = launch(&pool.executor()).name("answer").start(async { 6 * 7 });
/// assert_eq!(launched.wait(), Outcome::Value(42));
/// ```
///
/// Handlers are called on the executor when the task has ended. Closures name the types of their arguments:
///
/// ```
/// use convoke::prelude::*;
///
/// async fn parse(text: &'static str) -> Result<u32, std::num::ParseIntError> {
///     text.parse()
/// }
///
/// let pool = ThreadPool::new(2).unwrap();
/// let launched = launch(&pool.executor())
///     .on_value(|number: u32| println!("got {number}"))
///     .on_error(|error: std::num::ParseIntError| eprintln!("{error}"))
///     .on_stopped(|stopped| eprintln!("{stopped}"))
///     .start(parse("42"));
/// assert_eq!(launched.wait(), Outcome::Value(Ok(())));
/// ```
pub fn launch<X: Executor>(executor: &X) -> Launch {
    launch_below(Env::on(ExecutorRef::new(executor.clone())))
}

/// Returns a builder for launching a root task that inherits an environment: executor, stop token and the
/// rest.
pub(crate) fn launch_below(around: Env) -> Launch {
    let token = around.stop_token();
    Launch {
        around,
        changes: Changes::new(),
        token,
        allocator: None,
        context_allocator: None,
        name: None,
        location: None,
        handlers: Handlers::new(NoHandlers),
    }
}

/// The builder of [`launch()`]. `H` is the type of the handlers of values and errors.
#[must_use = "nothing is launched before `start`"]
pub struct Launch<H = NoHandlers> {
    around: Env,
    changes: Changes,
    token: StopToken,
    allocator: Option<FrameAllocator>,
    context_allocator: Option<FrameAllocator>,
    name: Option<Arc<str>>,
    location: Option<&'static Location<'static>>,
    handlers: Handlers<H>,
}

impl<H> Launch<H> {
    /// Sets the stop token: the task is asked to stop when its source is, or by [`Launched::request_stop`].
    /// It inherits the token's deadline.
    pub fn stop_token(mut self, token: StopToken) -> Self {
        self.token = token;
        self
    }

    /// Sets the allocator of all frames of the task and below. Without it, the allocator of the executor's context
    /// is used, or the default.
    pub fn allocator(mut self, frames: FrameAllocator) -> Self {
        self.allocator = Some(frames);
        self
    }

    /// Sets the context that the task belongs to: its frame allocator is used, unless
    /// [`allocator`](Launch::allocator) names another, before or after.
    pub fn context(mut self, context: &Context) -> Self {
        self.context_allocator = Some(context.allocator().clone());
        self
    }

    /// Sets a value in the environment of the task.
    pub fn local<T: Send + Sync + 'static>(mut self, key: &'static Local<T>, value: T) -> Self {
        self.changes = self.changes.local(key, value);
        self
    }

    /// Sets the name, for inspection and panics. Without one, the task is known by where it was launched.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the location that inspection shows, for code that launches on behalf of others. Without it, the
    /// location is where [`start`](Launch::start) is called.
    pub fn location(mut self, location: &'static Location<'static>) -> Self {
        self.location = Some(location);
        self
    }

    /// Sets the handler that is called if the task ends as stopped.
    pub fn on_stopped(mut self, f: impl FnOnce(Stopped) + Send + 'static) -> Self {
        self.handlers.stopped = Some(Box::new(f));
        self
    }

    /// Sets the handler that is called if the task, or another handler, panics. The panic is still resumed
    /// where the task is waited for. Without this handler, a panic is written to the error stream if the
    /// `Launched` is dropped.
    pub fn on_panic(mut self, f: impl FnOnce(&Panic) + Send + 'static) -> Self {
        self.handlers.panicked = Some(Box::new(f));
        self
    }

    /// Sets the handler that is called with what the task returns. What `f` returns is then the value that is
    /// waited for. If there is an error handler too, `f` is called with the value of an `Ok`.
    pub fn on_value<F>(self, f: F) -> Launch<H::WithValue<F>>
    where
        H: OnEnd,
    {
        self.with_handlers(|handlers| handlers.with_value(f))
    }

    /// Sets the handler that is called with the error of an `Err` that the task returns. What `f` returns is
    /// then the error that is waited for.
    pub fn on_error<F>(self, f: F) -> Launch<H::WithError<F>>
    where
        H: OnEnd,
    {
        self.with_handlers(|handlers| handlers.with_error(f))
    }

    fn with_handlers<G>(self, change: impl FnOnce(H) -> G) -> Launch<G> {
        Launch {
            around: self.around,
            changes: self.changes,
            token: self.token,
            allocator: self.allocator,
            context_allocator: self.context_allocator,
            name: self.name,
            location: self.location,
            handlers: self.handlers.map(change),
        }
    }

    /// Launches the task: it is posted to the executor, and runs there.
    ///
    /// Nothing is detached: the [`Launched`] waits for the task, also if it is dropped.
    ///
    /// # Panics
    /// If the frame allocator has no memory for it.
    #[track_caller]
    pub fn start<F>(self, future: F) -> Launched<H::Output>
    where
        F: Future<Output: Send> + Send + 'static,
        H: handlers::Finish<F::Output, Output: Send + 'static> + Send + 'static,
    {
        let location = self.location.unwrap_or(Location::caller());
        match self.location(location).try_start(future) {
            Ok(launched) => launched,
            Err(_future) => no_memory::<F>(location),
        }
    }

    /// Launches a task that is not `Send`. It stays on this thread, which is the owner thread of the executor, and
    /// acts for it now.
    ///
    /// # Panics
    /// If the executor has no owner thread, or this is not the one; and as [`start`](Launch::start).
    #[track_caller]
    #[doc(hidden)]
    pub fn start_local<F>(self, future: F) -> Launched<H::Output>
    where
        F: Future + 'static,
        H: handlers::Finish<F::Output> + Send + 'static,
    {
        let location = self.location.unwrap_or(Location::caller());
        let is_here = |owner: &OwnerThread| owner.id() == OwnerId::here() && owner.id() != OwnerId::NONE;
        assert!(
            self.around.executor().owner_thread().is_some_and(is_here),
            "a local task is started on the thread of its executor"
        );
        match self.begin(Spawnable::here(future), location) {
            Ok(launched) => launched,
            Err(_future) => no_memory::<F>(location),
        }
    }

    /// Launches the task like [`start`](Launch::start), or hands its future back if there is no memory for it.
    ///
    /// The memory of a launched task is released before its waiter hears that it has ended: in a
    /// [`Bounded`](convoke_core::frames::Bounded) allocator, one launch after the other needs the memory of one.
    ///
    /// # Errors
    /// With the future, if the frame allocator has no memory for it.
    #[track_caller]
    pub fn try_start<F>(self, future: F) -> Result<Launched<H::Output>, F>
    where
        F: Future<Output: Send> + Send + 'static,
        H: handlers::Finish<F::Output, Output: Send + 'static> + Send + 'static,
    {
        let location = self.location.unwrap_or(Location::caller());
        self.begin(Spawnable::anywhere(future), location)
    }

    fn begin<F>(
        self,
        future: Spawnable<F>,
        location: &'static Location<'static>,
    ) -> Result<Launched<H::Output>, F>
    where
        F: Future,
        H: handlers::Finish<F::Output>,
    {
        let source = self.token.child();
        let mut changes = self.changes.stop_token(source.token());
        if let Some(allocator) = self.allocator.or(self.context_allocator) {
            changes = changes.allocator(allocator);
        }
        let env = self.around.with(changes);
        let Some(root) = new_root(env, source, self.name) else { return Err(future.into_future()) };
        root.env().executor().work_began();
        match Root::start(&root, future, self.handlers, location) {
            Ok(()) => Ok(Launched::new(root, location)),
            Err(future) => {
                root.env().executor().work_ended();
                Err(future)
            }
        }
    }
}

#[cold]
#[track_caller]
fn no_memory<F>(location: &'static Location<'static>) -> ! {
    crate::task::no_memory::<F>(location).resume()
}

impl<H> fmt::Debug for Launch<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("executor", self.around.executor())
            .field("name", &self.name)
            .field("allocator", &self.allocator)
            .finish_non_exhaustive()
    }
}
