//! A root task that a test runs step by step: it is leaked if it does not end.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_core::raw::FrameArc;
use convoke_core::{Env, FrameAllocator, Outcome};

use super::root_parent::{RootEnd, RootParent};
use crate::task::{Spawnable, no_memory};

/// A root task on a loop that the caller runs. If dropped before the task has ended, the memory is leaked,
/// since other tasks may point into it; its loop must then be leaked, too.
pub struct LeakedRoot<T> {
    root: FrameArc<RootParent<End<T>>>,
}

/// The end of the task, as the test sees it.
type End<T> = Mutex<Ended<T>>;

enum Ended<T> {
    NotYet,
    With(Outcome<T>),
    /// The outcome was taken.
    Taken,
}

/// Stores the outcome for the test.
struct ToTest;

impl<T> RootEnd<End<T>, T> for ToTest {
    fn tell(self, root: FrameArc<RootParent<End<T>>>, outcome: Outcome<T>) {
        *lock(&root) = Ended::With(outcome);
    }
}

fn lock<T>(end: &End<T>) -> MutexGuard<'_, Ended<T>> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> LeakedRoot<T> {
    /// Starts a task that stays on the calling thread, which runs work of the environment's executor now.
    ///
    /// # Panics
    /// If it is not the owner thread of that executor.
    pub fn start_local<F>(env: Env, name: Arc<str>, location: &'static Location<'static>, future: F) -> Self
    where
        F: Future<Output = T> + 'static,
    {
        Self::begin(env, name, location, Spawnable::here(future))
    }

    /// Starts a task that may move to other executors.
    pub fn start<F>(env: Env, name: Arc<str>, location: &'static Location<'static>, future: F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        Self::begin(env, name, location, Spawnable::anywhere(future))
    }

    fn begin<F>(env: Env, name: Arc<str>, location: &'static Location<'static>, future: Spawnable<F>) -> Self
    where
        F: Future<Output = T>,
    {
        let root = RootParent::new(&FrameAllocator::system(), env, Some(name), Mutex::new(Ended::NotYet));
        let root = root.expect("there is memory for the parent of a test's root task");
        if let Err(future) = RootParent::start(&root, future, ToTest, location) {
            drop(future);
            *lock(&root) = Ended::With(Outcome::Panicked(no_memory::<F>(location)));
        }
        Self { root }
    }

    fn end(&self) -> &End<T> {
        &self.root
    }

    /// Returns true if the task has ended.
    pub fn has_ended(&self) -> bool {
        !matches!(*lock(self.end()), Ended::NotYet)
    }

    /// Takes the outcome, if the task has ended and it was not taken before.
    pub fn take_outcome(&self) -> Option<Outcome<T>> {
        let mut end = lock(self.end());
        match core::mem::replace(&mut *end, Ended::Taken) {
            Ended::With(outcome) => Some(outcome),
            before => {
                *end = before;
                None
            }
        }
    }
}

impl<T> Drop for LeakedRoot<T> {
    fn drop(&mut self) {
        if !self.has_ended() {
            // The task has a reference, and leads to it.
            leak(core::ptr::from_ref(&*self.root).cast_mut());
        }
    }
}

impl<T> fmt::Debug for LeakedRoot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeakedRoot").field("has ended", &self.has_ended()).finish_non_exhaustive()
    }
}

/// Records the address of memory that is never freed, so that leak checkers see that it is intended.
pub fn leak<T>(memory: *mut T) {
    static LEAKED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    LEAKED.lock().unwrap_or_else(PoisonError::into_inner).push(memory.expose_provenance());
}
