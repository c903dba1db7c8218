//! Hooks of tasks: code of the program that is called when a task is spawned, polled, asked to stop, and ended. For
//! traces, spans and measurements.
//!
//! Hooks are set where work is launched, under the key [`HOOKS`], and are inherited by everything below. A task that is
//! spawned there is shown to [`TaskHooks::spawned`], which may return a [`TaskObserver`]: a value that lies beside the
//! task, and so has room for a span. Its parent is the task whose `poll_begins` came last on this thread. Tasks that
//! already run are not observed, also not the one that sets the hooks.
//!
//! Without hooks in the process, a task that is spawned and awaited costs eight instructions more: a flag is tested at the
//! spawn and at each poll. While there are hooks anywhere in the process, the polls of all tasks take the path that a
//! diagnosis takes.

use core::fmt;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::env::Local;
use convoke_core::raw::{contain, report_panic, watching};
use convoke_core::{Outcome, StopReason};

/// The hooks of the tasks that are spawned in this environment.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use convoke::inspect::{HOOKS, Hooks, Spawned, TaskEnd, TaskHooks, TaskObserver};
/// use convoke::prelude::*;
///
/// /// Counts the polls of all tasks.
/// struct Count(Arc<AtomicUsize>);
///
/// impl TaskHooks for Count {
///     fn spawned(&self, _: &Spawned<'_>) -> Option<Box<dyn TaskObserver>> {
///         Some(Box::new(Count(self.0.clone())))
///     }
/// }
///
/// impl TaskObserver for Count {
///     fn poll_begins(&mut self) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let (pool, polls) = (ThreadPool::new(2)?, Arc::new(AtomicUsize::new(0)));
/// let hooks = Hooks::new(Count(polls.clone()));
/// let launched = launch(&pool.executor()).local(&HOOKS, hooks).start(async {
///     scope(async |s| s.spawn(async { checkpoint().await })).await
/// });
/// launched.wait().unwrap();
/// assert!(polls.load(Ordering::Relaxed) >= 3, "the child was polled twice");
/// # std::io::Result::Ok(())
/// ```
pub static HOOKS: Local<Hooks> = Local::inherited("hooks of tasks");

/// Code that is shown each task that is spawned where it is set: see [`HOOKS`].
///
/// It is called on the thread that spawns the task, and in the task that does, if there is one. It must not block. A
/// panic of it is written to the error stream, and the task goes on.
pub trait TaskHooks: Send + Sync + 'static {
    /// Returns an observer of a task that is being spawned, or `None` if the task is not to be observed. The task is
    /// queued afterwards.
    fn spawned(&self, task: &Spawned<'_>) -> Option<Box<dyn TaskObserver>>;
}

/// An observer of one task. It lies beside the task until that has ended, and is dropped then.
///
/// Its functions are called on the thread that polls the task, one at a time. They must not block. A panic of one is
/// written to the error stream, and the task goes on.
pub trait TaskObserver: Send {
    /// Called before each poll of the task.
    fn poll_begins(&mut self) {}

    /// Called after each poll, on the same thread. What the task has dropped by ending in that poll is gone.
    fn poll_ends(&mut self) {}

    /// Called once, before the poll in which the task sees that it was asked to stop. Not called for a task that ends
    /// without such a poll.
    fn asked_to_stop(&mut self, reason: StopReason) {
        let _ = reason;
    }

    /// Called once, when the task has ended, and before its parent is told.
    fn ended(&mut self, end: TaskEnd) {
        let _ = end;
    }
}

/// A task that is being spawned.
#[derive(Debug)]
#[non_exhaustive]
pub struct Spawned<'a> {
    /// Its name, if it was given one.
    pub name: Option<&'a str>,
    /// The line of the program that spawns it.
    pub location: &'static Location<'static>,
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskEnd {
    /// It returned a value.
    Returned,
    /// It was stopped.
    Stopped,
    /// It panicked.
    Panicked,
}

impl TaskEnd {
    #[inline]
    pub(crate) fn of<T>(outcome: &Outcome<T>) -> Self {
        match outcome {
            Outcome::Value(_) | Outcome::Error(_) => Self::Returned,
            Outcome::Stopped => Self::Stopped,
            Outcome::Panicked(_) => Self::Panicked,
        }
    }
}

impl fmt::Display for TaskEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Returned => "returned",
            Self::Stopped => "was stopped",
            Self::Panicked => "panicked",
        })
    }
}

/// Hooks as a value of an environment. A clone is the same hooks.
#[derive(Clone)]
pub struct Hooks(Arc<Installed>);

struct Installed {
    hooks: Box<dyn TaskHooks>,
}

impl Hooks {
    /// Makes a value of these hooks. From now on, and until the last clone is dropped, tasks look for hooks in their
    /// environment when they are spawned.
    pub fn new(hooks: impl TaskHooks) -> Self {
        watching::begin_hooks();
        Self(Arc::new(Installed { hooks: Box::new(hooks) }))
    }

    /// Shows a task to the hooks.
    pub(crate) fn spawned(&self, task: &Spawned<'_>) -> Option<Box<dyn TaskObserver>> {
        contain(report_panic, || self.0.hooks.spawned(task)).flatten()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        watching::end_hooks();
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}
