//! Panics of tasks with handles that may never be heard of: a handle may be dropped after its task has panicked.
//! The panic then goes to the parent.
//!
//! A parent has one [`Unheard`] for all its tasks, made at the first such panic. The panic is stored as the
//! payload of another one ([`UnheardPanic`]), which lies where the handle finds it. The handle takes it out
//! ([`heard`]). If it is dropped instead, it leaves the panic with the parent, and wakes that.

use core::task::Waker;

use convoke_core::Panic;
use convoke_core::raw::sync::Arc;
use convoke_core::raw::{SpinLock, wake_if_any};

/// The first panic that no handle has heard of, and the waker of the parent.
pub(crate) struct Unheard(SpinLock<UnheardState>);

struct UnheardState {
    panic: Option<Panic>,
    waker: Option<Waker>,
}

impl Unheard {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(SpinLock::new(UnheardState { panic: None, waker: None })))
    }

    /// Makes a panic of this one that comes here if it is dropped before a handle has heard of it.
    pub(crate) fn watch(this: &Arc<Self>, panic: Panic) -> Panic {
        Panic::from_payload(Box::new(UnheardPanic { panic: Some(panic), parent: this.clone() }))
    }

    /// Takes the panic, if there is one.
    pub(crate) fn take(&self) -> Option<Panic> {
        self.0.lock().panic.take()
    }

    /// Stores the waker of the parent. Returns true if a panic is there already.
    pub(crate) fn set_waker(&self, waker: Waker) -> bool {
        let mut state = self.0.lock();
        let before = state.waker.replace(waker);
        let is_there = state.panic.is_some();
        drop(state);
        drop(before);
        is_there
    }

    /// Stores a panic, unless it is the second one, which is dropped. Wakes the parent.
    fn put(&self, panic: Panic) {
        let mut state = self.0.lock();
        let second = if state.panic.is_none() { state.panic.replace(panic) } else { Some(panic) };
        let waker = state.waker.take();
        drop(state);
        // The panic hook has reported it.
        drop(second);
        wake_if_any(waker);
    }
}

/// The payload of a panic that no handle has heard of yet.
struct UnheardPanic {
    /// Set until it is heard of.
    panic: Option<Panic>,
    parent: Arc<Unheard>,
}

impl Drop for UnheardPanic {
    fn drop(&mut self) {
        if let Some(panic) = self.panic.take() {
            self.parent.put(panic);
        }
    }
}

/// Returns the panic that a handle hears of now.
pub(crate) fn heard(panic: Panic) -> Panic {
    match panic.into_payload().downcast::<UnheardPanic>() {
        Ok(mut watched) => watched.panic.take().expect("a panic is heard of once"),
        Err(payload) => Panic::from_payload(payload),
    }
}
