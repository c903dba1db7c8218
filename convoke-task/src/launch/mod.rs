//! `launch(&executor)`: the root of a chain, from ordinary code. Here is what is said at the launch; `root.rs` is what the chain
//! and whoever waits for it share, `launched.rs` the side that waits.

#![allow(unsafe_code)]

mod block_on;
mod handlers;
mod join;
mod launched;
#[cfg(feature = "testing")]
mod leaked_root;
mod root;
mod root_parent;

pub use block_on::{BlockOn, block_on, block_on_with};
pub use handlers::{Finish, OnBoth, OnEnd, OnError, OnValue, Untouched};
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
use convoke_core::{Env, Executor, ExecutorRef, FrameAllocator, Panic, StopToken};

use crate::{Context, Stopped};
use handlers::{Handlers, ToRoot};
use root::Root;

/// Says how a chain is to be launched on this executor; [`start`](Launch::start) launches it. For ordinary code: `main`, a
/// callback, a thread of a foreign library. In a task, open a [`scope`](crate::scope()).
///
/// The chain inherits nothing: what is not said here is the default. All that runs below inherits what is said.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let launched = launch(&pool.executor()).name("answer").start(async { just(6).await * 7 });
/// assert_eq!(launched.wait(), Outcome::Value(42));
/// ```
///
/// With handlers, which are called on the executor when the chain has ended; closures name the types they take:
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::stopped;
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

/// The same for who has an environment to inherit: its executor, its stop token and the rest.
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
        handlers: Handlers::new(Untouched),
    }
}

/// See [`launch()`]. `H` is what was said about values and errors.
#[must_use = "nothing is launched before `start`"]
pub struct Launch<H = Untouched> {
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
    /// The chain is asked to stop when this token's source is, besides by [`Launched::request_stop`]. It inherits the deadline.
    pub fn stop_token(mut self, token: StopToken) -> Self {
        self.token = token;
        self
    }

    /// Where the frames of the chain live. Without this: with the context's allocator, and without one, the default.
    pub fn allocator(mut self, frames: FrameAllocator) -> Self {
        self.allocator = Some(frames);
        self
    }

    /// The context that the chain belongs to: its frame allocator is the chain's, unless [`allocator`](Launch::allocator)
    /// names another, before or after.
    pub fn context(mut self, context: &Context) -> Self {
        self.context_allocator = Some(context.allocator().clone());
        self
    }

    /// A value in the environment of the chain.
    pub fn local<T: Send + Sync + 'static>(mut self, key: &'static Local<T>, value: T) -> Self {
        self.changes = self.changes.local(key, value);
        self
    }

    /// A name, for people who look, and for panics. Without one the chain is known by where it was launched.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Where it was launched, for people who look: for whoever launches on behalf of others. Without this it is where
    /// [`start`](Launch::start) is called.
    pub fn location(mut self, location: &'static Location<'static>) -> Self {
        self.location = Some(location);
        self
    }

    /// Called if the chain ends by the stopped door.
    pub fn on_stopped(mut self, f: impl FnOnce(Stopped) + Send + 'static) -> Self {
        self.handlers.stopped = Some(Box::new(f));
        self
    }

    /// Called if the chain panics, or another handler does. The panic goes on where the chain is waited for all the same;
    /// without a handler, one that nobody waits for is written to the error stream.
    pub fn on_panic(mut self, f: impl FnOnce(&Panic) + Send + 'static) -> Self {
        self.handlers.panicked = Some(Box::new(f));
        self
    }

    /// Called with what the chain returns; what `f` returns is then the value that is waited for. If there is an error
    /// handler too, it is called with the value in an `Ok`.
    pub fn on_value<F>(self, f: F) -> Launch<H::WithValue<F>>
    where
        H: OnEnd,
    {
        self.with_handlers(|handlers| handlers.with_value(f))
    }

    /// Called with the error in the `Err` that the chain returns; what `f` returns is then the error that is waited for.
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

    /// Launches the chain: it is posted to the executor, and runs there.
    ///
    /// Nothing is detached: who launches has the [`Launched`], and a program does not get past it before the chain has ended.
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
        let source = self.token.child();
        let mut changes = self.changes.stop_token(source.token());
        if let Some(allocator) = self.allocator.or(self.context_allocator) {
            changes = changes.allocator(allocator);
        }
        let env = self.around.with(changes);
        let Some(root) = Root::new(env, source, self.name) else { no_memory::<F>(location) };
        let ending = ToRoot::new(root.clone(), self.handlers);
        root.ground.env().executor().work_began();
        // SAFETY: the future is `Send` and `'static`; the ending keeps the root.
        if unsafe { root.ground.start(future, ending, false, location) }.is_err() {
            root.ground.env().executor().work_ended();
            no_memory::<F>(location)
        }
        Launched::new(root, location)
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
