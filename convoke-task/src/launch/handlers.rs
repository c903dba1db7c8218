//! The handlers that are called when a launched task has ended, and the ending that calls them.

use core::fmt;

use convoke_core::raw::FrameArc;
use convoke_core::{Executor, Outcome, Panic};

use super::root::{Root, RootState};
use super::root_parent::RootEnd;
use crate::Stopped;

/// The handlers of values and errors of a launch so far; one more can be added.
pub trait OnEnd: Sized {
    /// The handlers with this handler of values.
    type WithValue<F>;
    /// The handlers with this handler of errors.
    type WithError<F>;

    /// Adds a handler of values, or replaces it.
    fn with_value<F>(self, f: F) -> Self::WithValue<F>;

    /// Adds a handler of errors, or replaces it.
    fn with_error<F>(self, f: F) -> Self::WithError<F>;
}

/// The conversion of what the root task returns to what is waited for.
#[diagnostic::on_unimplemented(
    message = "the handlers of this launch do not fit a future that returns `{T}`",
    note = "a value handler takes what the future returns; with an error handler beside it, what is in its `Ok`",
    note = "an error handler needs a future that returns a `Result`, and takes what is in its `Err`"
)]
pub trait Finish<T> {
    /// The type that is waited for.
    type Output;

    /// Calls the handler that this value is for.
    fn finish(self, value: T) -> Self::Output;
}

/// No handler: what the task returns is what is waited for.
#[derive(Clone, Copy, Debug)]
pub struct NoHandlers;

/// A handler of values.
pub struct OnValue<F>(F);

/// A handler of errors.
pub struct OnError<G>(G);

/// A handler of values and one of errors.
pub struct OnBoth<F, G>(F, G);

impl OnEnd for NoHandlers {
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

impl<T> Finish<T> for NoHandlers {
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

    /// Calls the handlers that the outcome is for. Returns the outcome that is waited for, and true if a
    /// panic in it was reported to a handler.
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
        // The panic hook has reported a panic of the handler itself.
        let _ = Panic::catch(|| f(panic));
        (outcome, true)
    }
}

/// Passes the outcome through the handlers to the waiter.
impl<T, U, H: Finish<T, Output = U>> RootEnd<RootState<U>, T> for Handlers<H> {
    const NAMES_PANICS: bool = true;

    fn tell(self, root: FrameArc<Root<U>>, outcome: Outcome<T>) {
        let stopped = Stopped::new(root.env().stop().reason());
        let called = Panic::catch(|| self.call(outcome, stopped));
        // A panic that is caught here is that of the destructor of a handler that was not called.
        let (outcome, reported) = called.unwrap_or_else(|panic| (Outcome::Panicked(panic), false));
        // An executor of the program may panic: the waiter must hear all the same. The panic hook has reported
        // it.
        let executor = Panic::catch(|| root.env().executor().clone());
        let waiter = root.end(outcome, reported);
        // Before the waiter hears: it may count on the memory being released.
        drop(root);
        if let Some(waiter) = waiter {
            waiter.tell();
        }
        let _ = executor.and_then(|executor| Panic::catch(|| executor.work_ended()));
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
