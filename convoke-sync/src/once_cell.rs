//! `OnceCell`: a value that is made once, by the first who needs it.

use core::convert::Infallible;
use core::fmt;
use core::future::Future;
use std::sync::OnceLock;

use convoke_core::raw::sync::const_outside_models;

use super::event::Event;
use super::permits::Permits;
use convoke_core::raw::Pause;

/// A value that is made by the first who needs it, asynchronously, while others who need it wait.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::OnceCell;
///
/// static SETTINGS: OnceCell<String> = OnceCell::new();
///
/// let outcome = block_on(async {
///     let first = SETTINGS.get_or_init(async || { checkpoint().await; "dark".to_owned() }).await;
///     let second = SETTINGS.get_or_init(async || unreachable!("it is made once")).await;
///     (first.len(), second.len())
/// });
/// assert_eq!(outcome, Outcome::Value((4, 4)));
/// ```
pub struct OnceCell<T> {
    value: OnceLock<T>,
    /// One: who has it makes the value.
    turn: Permits,
    made: Event,
}

/// The turn goes to the next who wants to make the value, also if this one is dropped half way.
struct Turn<'a>(&'a Permits);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.release(1);
    }
}

impl<T> OnceCell<T> {
    const_outside_models! {
        /// One without a value.
        pub fn new() -> Self {
            Self { value: OnceLock::new(), turn: Permits::new(1), made: Event::new() }
        }
    }

    /// The value, if it was made.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value, if it was made.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// The value, if it was made.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Sets the value. If there is one already, or somebody is making one, the new one is given back.
    pub fn set(&self, value: T) -> Result<(), T> {
        if !self.turn.try_acquire(1) {
            return Err(value);
        }
        let _turn = Turn(&self.turn);
        self.value.set(value)?;
        self.made.set();
        Ok(())
    }

    /// The value; if there is none, it is made.
    ///
    /// - *Completes with* the value, or stopped: also if there is a value, when a stop was asked for.
    /// - *If dropped*, stopped or panicking while it makes the value, the next who waits makes it.
    /// - *Runs on* the task of the first who needs the value.
    #[track_caller]
    pub fn get_or_init<F, Fut>(&self, init: F) -> impl Future<Output = &T>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        let pause = Pause::here();
        async move {
            let init = || {
                let made = init();
                async move { Ok::<T, Infallible>(made.await) }
            };
            match self.make(pause, init).await {
                Ok(value) => value,
                Err(never) => match never {},
            }
        }
    }

    /// The value; if there is none, it is made, which may fail. The next who waits tries again then.
    ///
    /// - *Completes with* the value, the error, or stopped: also if there is a value, when a stop was asked for.
    /// - *If dropped*, *Runs on*: as [`get_or_init`](OnceCell::get_or_init).
    #[track_caller]
    pub fn get_or_try_init<E, F, Fut>(&self, init: F) -> impl Future<Output = Result<&T, E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.make(Pause::here(), init)
    }

    /// Waits until somebody has made the value.
    ///
    /// - *Completes with* the value, or stopped: also if there is a value, when a stop was asked for.
    /// - *If dropped*, it does not wait any more.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = &T> {
        let made = self.made.wait();
        async move {
            made.await;
            self.value.get().expect("it was made")
        }
    }

    async fn make<E, F, Fut>(&self, pause: Pause, init: F) -> Result<&T, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        Pause::stop_here().await;
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        self.turn.acquire(1, pause).await;
        let _turn = Turn(&self.turn);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = init().await?;
        let value = self.value.get_or_init(|| value);
        self.made.set();
        Ok(value)
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceCell").field(&self.get()).finish()
    }
}
