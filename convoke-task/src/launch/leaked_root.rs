//! A root task that a test runs step by step: it is leaked if it does not end.

#![allow(unsafe_code)]

use core::future::Future;
use core::panic::Location;
use core::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_core::{Env, Outcome};

use super::root_parent::RootParent;
use crate::task::{Ending, Known, TaskHeader, no_memory};

/// A root task on a loop that the caller runs. If dropped before the task has ended, the memory is leaked,
/// since other tasks may point into it; its loop must then be leaked, too.
#[derive(Debug)]
pub struct LeakedRoot<T> {
    storage: NonNull<Storage<T>>,
}

/// The parent of the task.
#[repr(C)]
struct Storage<T> {
    /// First, so that a pointer to the root parent is a pointer to this.
    parent: RootParent,
    end: End<T>,
}

type End<T> = Arc<Mutex<Ended<T>>>;

enum Ended<T> {
    NotYet,
    With(Outcome<T>),
    /// The outcome was taken.
    Taken,
}

/// The ending that puts the outcome into the storage.
struct ToStorage<T> {
    storage: NonNull<Storage<T>>,
    end: End<T>,
}

// SAFETY: nothing here frees the task.
unsafe impl<T> Ending<T> for ToStorage<T> {
    unsafe fn ended(&self, _: NonNull<TaskHeader>, _: NonNull<Outcome<T>>) {
        // SAFETY: the storage stays until the outcome was delivered; the task calls this once.
        unsafe { self.storage.as_ref().parent.ended() };
    }

    unsafe fn deliver(&self, _: NonNull<TaskHeader>, outcome: NonNull<Outcome<T>>) -> Known {
        // SAFETY: the outcome is in the slot, and is taken once.
        *lock(&self.end) = Ended::With(unsafe { outcome.read() });
        Known::ToTheParent
    }
}

fn lock<T>(end: &End<T>) -> MutexGuard<'_, Ended<T>> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> LeakedRoot<T> {
    /// Starts a task that stays on the calling thread, which is the owner thread of the environment's executor.
    ///
    /// # Safety
    /// This thread runs work of that executor now.
    pub unsafe fn start_local<F>(
        env: Env,
        name: Arc<str>,
        location: &'static Location<'static>,
        future: F,
    ) -> Self
    where
        F: Future<Output = T> + 'static,
    {
        // SAFETY: the task is local, and this thread is the owner thread: the caller's promise.
        unsafe { Self::begin(env, name, location, future, true) }
    }

    /// Starts a task that may move to other executors.
    pub fn start<F>(env: Env, name: Arc<str>, location: &'static Location<'static>, future: F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        // SAFETY: the future is `Send`.
        unsafe { Self::begin(env, name, location, future, false) }
    }

    /// # Safety
    /// The future is `Send`, or the task is local and this thread the owner thread of its executor.
    unsafe fn begin<F>(
        env: Env,
        name: Arc<str>,
        location: &'static Location<'static>,
        future: F,
        local: bool,
    ) -> Self
    where
        F: Future<Output = T> + 'static,
    {
        let storage = NonNull::from(Box::leak(Box::<Storage<T>>::new_uninit())).cast::<Storage<T>>();
        let end = Arc::new(Mutex::new(Ended::NotYet));
        // SAFETY: the root parent is the first field (`repr(C)`) of what is put there. It stays until the
        // task has delivered: see `drop`. The future borrows nothing; it is `Send`, or stays on this thread:
        // the caller's promise.
        let started = unsafe {
            let parent = RootParent::new(storage.cast(), env, Some(name));
            storage.write(Storage { parent, end: end.clone() });
            let ending = ToStorage { storage, end: end.clone() };
            storage.as_ref().parent.start(future, ending, local, location)
        };
        if let Err(future) = started {
            drop(future);
            *lock(&end) = Ended::With(Outcome::Panicked(no_memory::<F>(location)));
        }
        Self { storage }
    }

    fn end(&self) -> &End<T> {
        // SAFETY: the storage is alive until `self` is dropped.
        unsafe { &self.storage.as_ref().end }
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
        if self.has_ended() {
            // SAFETY: the task has delivered and does not use the storage any more, which was allocated as a
            // box.
            drop(unsafe { Box::from_raw(self.storage.as_ptr()) });
        } else {
            leak(self.storage.as_ptr());
        }
    }
}

/// Records the address of memory that is never freed, so that leak checkers see that it is intended.
pub fn leak<T>(memory: *mut T) {
    static LEAKED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    LEAKED.lock().unwrap_or_else(PoisonError::into_inner).push(memory.expose_provenance());
}
