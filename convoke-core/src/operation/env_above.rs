//! The environment of an operation's receiver, for children on several threads. A receiver is not `Sync`: it is asked
//! once, before there are children, and they read the answer.

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use crate::{Env, Receiver};

/// The answer of a receiver to the question for its environment.
pub struct EnvAbove(Cell<Option<NonNull<Env>>>);

// SAFETY: an environment is `Sync`; the cell is written by `ask` alone, before anybody reads.
unsafe impl Send for EnvAbove {}
// SAFETY: as above.
unsafe impl Sync for EnvAbove {}

impl EnvAbove {
    /// Not asked for yet.
    #[inline]
    pub const fn new() -> Self {
        Self(Cell::new(None))
    }

    /// Asks the receiver.
    ///
    /// # Safety
    /// No other thread uses this yet. The receiver stays where it is, untouched, for as long as [`get`](EnvAbove::get)
    /// is called.
    #[inline]
    pub unsafe fn ask<V, E, R: Receiver<V, E>>(&self, receiver: &R) {
        self.0.set(Some(NonNull::from(receiver.env())));
    }

    /// The environment.
    ///
    /// # Safety
    /// After [`ask`](EnvAbove::ask), and as long as its receiver stays.
    #[inline]
    pub unsafe fn get(&self) -> &Env {
        // SAFETY: it was borrowed from the receiver, which is still in its place: the caller's promise.
        unsafe { self.0.get().expect("asked for before it is needed").as_ref() }
    }
}

impl Default for EnvAbove {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EnvAbove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvAbove").field("asked", &self.0.get().is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use crate::prelude::*;
    use crate::testing::Connected;
    use crate::{Completes, Env, Outcome, Receiver};

    /// An adaptor as a user might write it: its receiver counts, in a cell, how often it was asked.
    struct Asked<S>(S, Arc<AtomicUsize>);

    struct AskedReceiver<R> {
        receiver: R,
        times: Cell<usize>,
        told: Arc<AtomicUsize>,
    }

    // SAFETY: the operation is that of the sender, with a receiver that completes ours when it is completed itself.
    unsafe impl<S: Sender> Sender for Asked<S> {
        type Value = S::Value;
        type Error = S::Error;
        const COMPLETES: Completes = S::COMPLETES;
        type Operation<R: Receiver<S::Value, S::Error>> = S::Operation<AskedReceiver<R>>;

        fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> Self::Operation<R> {
            self.0.connect(AskedReceiver { receiver, times: Cell::new(0), told: self.1 })
        }
    }

    impl<V, E, R: Receiver<V, E>> Receiver<V, E> for AskedReceiver<R> {
        fn complete(self, outcome: Outcome<V, E>) {
            self.told.store(self.times.get(), Ordering::Relaxed);
            self.receiver.complete(outcome);
        }

        fn env(&self) -> &Env {
            self.times.set(self.times.get() + 1);
            self.receiver.env()
        }
    }

    /// Looks at the environment on a thread of its own, as often as it is told to.
    fn looks_around(times: usize) -> impl Sender<Value = (), Error = &'static str> {
        from_callback(move |completion: Completion<(), &'static str>| {
            thread::spawn(move || {
                assert!((0..times).all(|_| !completion.stop_requested()));
                completion.value(());
            });
        })
    }

    #[test]
    fn a_receiver_is_asked_by_one_thread_alone_however_many_children_want_to_know() {
        let asked = Arc::new(AtomicUsize::new(0));
        let all = when_all((looks_around(500), looks_around(500)));
        assert_eq!(Connected::new(Asked(all, asked.clone())).start().wait(), Outcome::Value(((), ())));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}
