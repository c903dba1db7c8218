//! `OnceCell`: a value that is initialised once, by the first task that needs it.

use core::convert::Infallible;
use core::fmt;
use core::future::Future;
use std::sync::OnceLock;

use convoke_core::raw::sync::const_outside_models;

use super::event::Event;
use super::permits::Permits;
use convoke_core::raw::Pause;

/// A value that the first task that needs it initialises with a future, while other tasks that need it wait.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::OnceCell;
///
/// static SETTINGS: OnceCell<String> = OnceCell::new();
///
/// let outcome = block_on(async {
///     let load = async || {
///         checkpoint().await;
///         "dark".to_owned()
///     };
///     let first = SETTINGS.get_or_init(load).await;
///     let second = SETTINGS.get_or_init(async || unreachable!("it is set")).await;
///     (first.len(), second.len())
/// });
/// assert_eq!(outcome, Outcome::Value((4, 4)));
/// ```
pub struct OnceCell<T> {
    value: OnceLock<T>,
    /// One permit: the holder initialises the value.
    initializing: Permits,
    initialized: Event,
}

/// Holds the permit to initialise. Dropping it, also half way, lets the next waiter try.
struct Initializing<'a>(&'a Permits);

impl Drop for Initializing<'_> {
    fn drop(&mut self) {
        self.0.release(1);
    }
}

impl<T> OnceCell<T> {
    const_outside_models! {
        /// Creates a cell without a value.
        pub fn new() -> Self {
                Self { value: OnceLock::new(), initializing: Permits::new(1), initialized: Event::new() }
        }
    }

    /// Returns the value, if it is initialised.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Returns the value, if it is initialised.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// Consumes the cell and returns the value, if it is initialised.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Sets the value. Returns it as the error if there is a value already, or while another task initialises
    /// it.
    pub fn set(&self, value: T) -> Result<(), T> {
        if !self.initializing.try_acquire(1) {
            return Err(value);
        }
        let _initializing = Initializing(&self.initializing);
        self.value.set(value)?;
        self.initialized.set();
        Ok(())
    }

    /// Returns the value. If there is none, initialises it with `init`.
    ///
    /// - *Completes with* the value, or as stopped if a stop was requested, even if there is a value.
    /// - *If dropped*, stopped or panicking while it initialises the value, the next waiter does so with its
    ///   own `init`.
    /// - *Runs on* the calling task, and so does `init`.
    #[track_caller]
    pub fn get_or_init<F, Fut>(&self, init: F) -> impl Future<Output = &T>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        let pause = Pause::here();
        async move {
            let init = || {
                let value = init();
                async move { Ok::<T, Infallible>(value.await) }
            };
            match self.initialize(pause, init).await {
                Ok(value) => value,
                Err(never) => match never {},
            }
        }
    }

    /// Returns the value. If there is none, initialises it with `init`, which may fail. After a failure the
    /// next waiter tries with its own `init`.
    ///
    /// - *Completes with* the value, the error, or as stopped if a stop was requested, even if there is a
    ///   value.
    /// - *If dropped*, *Runs on*: as for [`get_or_init`](OnceCell::get_or_init).
    #[track_caller]
    pub fn get_or_try_init<E, F, Fut>(&self, init: F) -> impl Future<Output = Result<&T, E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.initialize(Pause::here(), init)
    }

    /// Waits until another task has initialised the value.
    ///
    /// - *Completes with* the value, or as stopped if a stop was requested, even if there is a value.
    /// - *If dropped*, it stops waiting.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = &T> {
        let initialized = self.initialized.wait();
        async move {
            initialized.await;
            self.value.get().expect("the event is set after the value")
        }
    }

    async fn initialize<E, F, Fut>(&self, pause: Pause, init: F) -> Result<&T, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        Pause::stop_here().await;
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        self.initializing.acquire(1, pause).await;
        let _initializing = Initializing(&self.initializing);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = init().await?;
        let value = self.value.get_or_init(|| value);
        self.initialized.set();
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
