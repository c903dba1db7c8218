//! What is called when a chain has ended, and the ending that calls it.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use convoke_core::{Executor, Outcome, Panic};

use super::root::Root;
use crate::Stopped;
use crate::frame_arc::FrameArc;
use crate::scope::name_panic;
use crate::task::{Ending, Known, TaskHeader};

/// What was said at a launch about values and errors; one more thing can be said.
pub trait OnEnd: Sized {
    /// With this handler of values.
    type WithValue<F>;
    /// With this handler of errors.
    type WithError<F>;

    /// Says it.
    fn with_value<F>(self, f: F) -> Self::WithValue<F>;

    /// Says it.
    fn with_error<F>(self, f: F) -> Self::WithError<F>;
}

/// What becomes of what a chain returns.
#[diagnostic::on_unimplemented(
    message = "the handlers of this launch do not fit a future that returns `{T}`",
    note = "a value handler takes what the future returns; with an error handler beside it, what is in its `Ok`",
    note = "an error handler needs a future that returns a `Result`, and takes what is in its `Err`"
)]
pub trait Finish<T> {
    /// That.
    type Output;

    /// The chain has returned this.
    fn finish(self, value: T) -> Self::Output;
}

/// No handler: what the chain returns is what is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Untouched;

/// A handler of values.
pub struct OnValue<F>(F);

/// A handler of errors.
pub struct OnError<G>(G);

/// A handler of values and one of errors.
pub struct OnBoth<F, G>(F, G);

impl OnEnd for Untouched {
    type WithValue<F> = OnValue<F>;
    type WithError<F> = OnError<F>;

    fn with_value<F>(self, f: F) -> OnValue<F> {
        OnValue(f)
    }

    fn with_error<F>(self, f: F) -> OnError<F> {
        OnError(f)
    }
}

impl<G> OnEnd for OnValue<G> {
    type WithValue<F> = OnValue<F>;
    type WithError<F> = OnBoth<G, F>;

    fn with_value<F>(self, f: F) -> OnValue<F> {
        OnValue(f)
    }

    fn with_error<F>(self, f: F) -> OnBoth<G, F> {
        OnBoth(self.0, f)
    }
}

impl<G> OnEnd for OnError<G> {
    type WithValue<F> = OnBoth<F, G>;
    type WithError<F> = OnError<F>;

    fn with_value<F>(self, f: F) -> OnBoth<F, G> {
        OnBoth(f, self.0)
    }

    fn with_error<F>(self, f: F) -> OnError<F> {
        OnError(f)
    }
}

impl<A, B> OnEnd for OnBoth<A, B> {
    type WithValue<F> = OnBoth<F, B>;
    type WithError<F> = OnBoth<A, F>;

    fn with_value<F>(self, f: F) -> OnBoth<F, B> {
        OnBoth(f, self.1)
    }

    fn with_error<F>(self, f: F) -> OnBoth<A, F> {
        OnBoth(self.0, f)
    }
}

impl<T> Finish<T> for Untouched {
    type Output = T;

    fn finish(self, value: T) -> T {
        value
    }
}

impl<T, U, F: FnOnce(T) -> U> Finish<T> for OnValue<F> {
    type Output = U;

    fn finish(self, value: T) -> U {
        (self.0)(value)
    }
}

impl<T, E, W, G: FnOnce(E) -> W> Finish<Result<T, E>> for OnError<G> {
    type Output = Result<T, W>;

    fn finish(self, value: Result<T, E>) -> Result<T, W> {
        value.map_err(self.0)
    }
}

impl<T, U, E, W, F: FnOnce(T) -> U, G: FnOnce(E) -> W> Finish<Result<T, E>> for OnBoth<F, G> {
    type Output = Result<U, W>;

    fn finish(self, value: Result<T, E>) -> Result<U, W> {
        match value {
            Ok(value) => Ok((self.0)(value)),
            Err(error) => Err((self.1)(error)),
        }
    }
}

type StoppedHandler = Box<dyn FnOnce(Stopped) + Send>;
type PanicHandler = Box<dyn FnOnce(&Panic) + Send>;

/// All handlers of a launch.
pub(super) struct Handlers<H> {
    finish: H,
    pub(super) stopped: Option<StoppedHandler>,
    pub(super) panicked: Option<PanicHandler>,
}

impl<H> Handlers<H> {
    pub(super) fn new(finish: H) -> Self {
        Self { finish, stopped: None, panicked: None }
    }

    pub(super) fn map<G>(self, change: impl FnOnce(H) -> G) -> Handlers<G> {
        Handlers { finish: change(self.finish), stopped: self.stopped, panicked: self.panicked }
    }

    /// Calls those that the outcome is for. The outcome that is waited for, and whether somebody was told of a panic in it.
    fn call<T>(self, outcome: Outcome<T>, stopped: Stopped) -> (Outcome<H::Output>, bool)
    where
        H: Finish<T>,
    {
        let Self { finish, stopped: on_stopped, panicked } = self;
        let outcome = match outcome {
            Outcome::Value(value) => Outcome::catch(|| finish.finish(value)),
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped => {
                let called = Panic::catch(|| {
                    if let Some(f) = on_stopped {
                        f(stopped);
                    }
                });
                called.map_or_else(Outcome::Panicked, |()| Outcome::Stopped)
            }
            Outcome::Panicked(panic) => Outcome::Panicked(panic),
        };
        let (Outcome::Panicked(panic), Some(f)) = (&outcome, panicked) else { return (outcome, false) };
        // The hook has told of a panic in here.
        let _ = Panic::catch(|| f(panic));
        (outcome, true)
    }
}

/// The outcome goes through the handlers to the root.
pub(super) struct ToRoot<U, H> {
    root: FrameArc<Root<U>>,
    handlers: Cell<Option<Handlers<H>>>,
}

impl<U, H> ToRoot<U, H> {
    pub(super) fn new(root: FrameArc<Root<U>>, handlers: Handlers<H>) -> Self {
        Self { root, handlers: Cell::new(Some(handlers)) }
    }
}

// SAFETY: the task is not freed by what is done here.
unsafe impl<T, U, H: Finish<T, Output = U>> Ending<T> for ToRoot<U, H> {
    unsafe fn ended(&self, task: NonNull<TaskHeader>, room: NonNull<Outcome<T>>) {
        // SAFETY: the caller's.
        unsafe {
            self.root.ground.ended();
            name_panic(task, self.root.ground.name(), room);
        }
    }

    unsafe fn deliver(&self, _: NonNull<TaskHeader>, room: NonNull<Outcome<T>>) -> Known {
        // SAFETY: the outcome is there, and taken once.
        let outcome = unsafe { room.read() };
        let Some(handlers) = self.handlers.take() else { return Known::ToTheParent };
        let stopped = Stopped::new(self.root.ground.env().stop().reason());
        let called = Panic::catch(|| handlers.call(outcome, stopped));
        // What is caught here is the panic of a handler that was not called and did not let itself be dropped.
        let (outcome, told) = called.unwrap_or_else(|panic| (Outcome::Panicked(panic), false));
        self.root.ended(outcome, told);
        // An executor of the program's may panic: the task has to leave all the same. The panic hook has reported it.
        let _ = Panic::catch(|| self.root.ground.env().executor().work_ended());
        Known::ToTheParent
    }
}

impl<F> fmt::Debug for OnValue<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnValue")
    }
}

impl<F> fmt::Debug for OnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnError")
    }
}

impl<F, G> fmt::Debug for OnBoth<F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnBoth")
    }
}
