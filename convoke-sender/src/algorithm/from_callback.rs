//! `from_callback(f)`: hands the completion to code that knows nothing of senders.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::{PhantomData, PhantomPinned};
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;

use crate::operation::Handshake;
use crate::{Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::{Env, Never, Outcome, Panic, StopToken};

/// Makes a sender that calls `f` with a [`Completion`], and completes with the outcome that this handle is
/// given, at any time and on any thread.
///
/// A stop request has no effect by itself: the holder of the handle checks
/// [`stop_requested`](Completion::stop_requested) or listens to [`stop_token`](Completion::stop_token). If
/// the handle is leaked, the work never ends.
///
/// - *Completes with* the outcome given to the handle; stopped if the handle is dropped. If `f` panics:
///   panicked, as soon as the handle has been used or dropped too.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread that starts it, for `f`. It completes on the thread that uses the handle, or, if
///   the handle is used before `f` has returned, on the thread of `f`.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = from_callback(|completion: Completion<u32>| {
///     std::thread::spawn(move || completion.value(42));
/// });
/// assert_eq!(sync_wait(sender), Outcome::Value(42));
/// ```
pub fn from_callback<F, V, E>(f: F) -> FromCallback<F, V, E>
where
    F: FnOnce(Completion<V, E>) + Send,
    V: Send,
    E: Send,
{
    FromCallback { f, _outcome: PhantomData }
}

/// The sender of [`from_callback()`].
#[must_use = "a sender does nothing until it is started"]
pub struct FromCallback<F, V, E> {
    f: F,
    _outcome: PhantomData<fn() -> (V, E)>,
}

impl<F: Clone, V, E> Clone for FromCallback<F, V, E> {
    fn clone(&self) -> Self {
        Self { f: self.f.clone(), _outcome: PhantomData }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the second to arrive at the rendezvous, when `f` has returned and the
// handle has ended, completes the receiver last. Rule 3: `COMPLETES` is the default, `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<F, V, E> Sender for FromCallback<F, V, E>
where
    F: FnOnce(Completion<V, E>) + Send,
    V: Send,
    E: Send,
{
    type Value = V;
    type Error = E;
    type Operation<R: Receiver<V, E>> = FromCallbackOperation<F, V, E, R>;

    #[inline]
    fn connect<R: Receiver<V, E>>(self, receiver: R) -> Self::Operation<R> {
        FromCallbackOperation {
            shared: Shared {
                rendezvous: Handshake::new(),
                outcome: UnsafeCell::new(None),
                env: FromCallbackOperation::<F, V, E, R>::env,
                finish: FromCallbackOperation::<F, V, E, R>::finish,
            },
            f: Some(self.f),
            panic: None,
            receiver: Some(receiver),
            _pinned: PhantomPinned,
        }
    }
}

/// A handle that completes a piece of work, once. It may be moved to any thread; dropping it completes the
/// work as stopped.
///
/// It is one pointer, into the operation, which lives until the handle has ended.
#[must_use = "dropping a completion completes its work as stopped"]
pub struct Completion<V, E = Never> {
    shared: NonNull<Shared<V, E>>,
}

// SAFETY: the operation is `Send`, and rules 1 and 2 of `Shared` give what the handle touches to it alone.
// The outcome may be carried to another thread, because V and E are `Send`.
unsafe impl<V: Send, E: Send> Send for Completion<V, E> {}

impl<V, E> Completion<V, E> {
    /// Completes the work with `outcome`.
    #[inline]
    pub fn complete(self, outcome: Outcome<V, E>) {
        let shared = ManuallyDrop::new(self).shared;
        // SAFETY: the only handle is given up without its `Drop`, so this is called once.
        unsafe { Shared::complete(shared, outcome) };
    }

    /// Completes the work with a value.
    pub fn value(self, value: V) {
        self.complete(Outcome::Value(value));
    }

    /// Completes the work with an error.
    pub fn error(self, error: E) {
        self.complete(Outcome::Error(error));
    }

    /// Completes the work as stopped.
    pub fn stopped(self) {
        self.complete(Outcome::Stopped);
    }

    /// Returns the stop token of the work, to store.
    pub fn stop_token(&self) -> StopToken {
        self.env().stop_token()
    }

    /// Returns true if the work was asked to stop.
    pub fn stop_requested(&self) -> bool {
        self.env().stop().stop_requested()
    }

    fn env(&self) -> &Env {
        // SAFETY: rule 2 of `Shared`: the operation is alive, and its receiver is not moved, while the handle
        // exists.
        unsafe { (self.shared.as_ref().env)(self.shared).as_ref() }
    }
}

impl<V, E> Drop for Completion<V, E> {
    fn drop(&mut self) {
        // SAFETY: the only handle ends here; `complete` does not run `drop`, so this is called once.
        unsafe { Shared::complete(self.shared, Outcome::Stopped) };
    }
}

/// The part of the operation that the handle knows. `start` and the handle meet here, and the second to
/// arrive completes the receiver: so the operation is not freed while `f` still runs, and a panic of `f` is
/// not lost.
///
/// 1. The end of the handle writes `outcome`, and `start` writes `panic`, each before it arrives at the
///    rendezvous. The second to arrive reads both.
/// 2. The receiver is not moved until the second to arrive takes it. Before that only the handle reads it.
/// 3. The second to arrive is the only user of the operation.
struct Shared<V, E> {
    rendezvous: Handshake,
    outcome: UnsafeCell<Option<Outcome<V, E>>>,
    env: unsafe fn(NonNull<Self>) -> NonNull<Env>,
    finish: unsafe fn(NonNull<Self>),
}

impl<V, E> Shared<V, E> {
    /// Stores the outcome and arrives.
    ///
    /// # Safety
    /// Called once, by the end of the handle.
    unsafe fn complete(this: NonNull<Self>, outcome: Outcome<V, E>) {
        // SAFETY: rule 1: the outcome is ours to write. The operation is alive until both have arrived.
        unsafe {
            *this.as_ref().outcome.get() = Some(outcome);
            Self::arrive(this);
        }
    }

    /// Arrives at the rendezvous; the second to arrive finishes the operation.
    ///
    /// # Safety
    /// Called once by `start` and once by the end of the handle. Neither touches anything afterwards.
    unsafe fn arrive(this: NonNull<Self>) {
        // SAFETY: the operation is alive until both have arrived; rule 3 for the second.
        unsafe {
            if this.as_ref().rendezvous.arrive() {
                (this.as_ref().finish)(this);
            }
        }
    }
}

/// The operation of [`from_callback()`].
#[repr(C)]
pub struct FromCallbackOperation<F, V, E, R> {
    // First, so that a pointer to it is a pointer to the operation.
    shared: Shared<V, E>,
    f: Option<F>,
    panic: Option<Panic>,
    receiver: Option<R>,
    _pinned: PhantomPinned,
}

impl<F, V, E, R: Receiver<V, E>> FromCallbackOperation<F, V, E, R> {
    /// Returns the environment of the receiver.
    ///
    /// # Safety
    /// Called by the handle, with the first field of a live operation.
    unsafe fn env(shared: NonNull<Shared<V, E>>) -> NonNull<Env> {
        // SAFETY: `shared` is the first field of the operation (`repr(C)`). Rule 2: the receiver is not
        // moved. Only the receiver is borrowed, because `start` may write the panic at the same time.
        unsafe {
            let receiver = &(*shared.cast::<Self>().as_ptr()).receiver;
            NonNull::from(receiver.as_ref().expect("the receiver is taken after the handle has ended").env())
        }
    }

    /// Completes the receiver.
    ///
    /// # Safety
    /// Called by the second to arrive at the rendezvous, with the first field of the operation.
    unsafe fn finish(shared: NonNull<Shared<V, E>>) {
        // SAFETY: `shared` is the first field of the operation (`repr(C)`); rule 3: the caller is the only
        // user.
        let this = unsafe { &mut *shared.cast::<Self>().as_ptr() };
        let outcome = this.shared.outcome.get_mut().take();
        let outcome = match this.panic.take() {
            Some(panic) => Some(Outcome::Panicked(panic).after_drop_of(outcome)),
            None => outcome,
        };
        if let (Some(receiver), Some(outcome)) = (this.receiver.take(), outcome) {
            receiver.complete(outcome);
        }
    }
}

impl<F, V, E, R> Operation for FromCallbackOperation<F, V, E, R>
where
    F: FnOnce(Completion<V, E>) + Send,
    V: Send,
    E: Send,
    R: Receiver<V, E>,
{
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: only fields that are not structurally pinned are moved out.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: the operation is pinned until the receiver is completed, which happens when both the handle
        // and `start` have arrived. Rule 1: `panic` is ours to write until then.
        unsafe {
            let Some(f) = (*this.as_ptr()).f.take() else { return };
            let completion = Completion { shared: this.cast() };
            if let Err(panic) = Panic::catch(|| f(completion)) {
                (*this.as_ptr()).panic = Some(panic);
            }
            Shared::arrive(this.cast::<Shared<V, E>>());
        }
    }
}

impl<F, V, E> fmt::Debug for FromCallback<F, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FromCallback")
    }
}

impl<V, E> fmt::Debug for Completion<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

impl<F, V, E, R> fmt::Debug for FromCallbackOperation<F, V, E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromCallbackOperation").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;
    use std::thread;

    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, all_doors, stopped_env};

    type Handle = Completion<i32, &'static str>;

    #[test]
    fn completes_with_what_the_handle_is_given_before_the_function_returns() {
        let twice = all_doors(1, "e").into_iter().zip(all_doors(1, "e"));
        for ((expected, _), (outcome, _)) in twice {
            let sender = from_callback(|handle: Handle| handle.complete(outcome));
            assert_eq!(Connected::new(sender).outcome(), expected);
        }
    }

    #[test]
    fn completes_with_what_the_handle_is_given_later() {
        let through = |end: fn(Handle)| {
            let stored = Mutex::new(None);
            Connected::new(from_callback(|handle: Handle| *stored.lock().unwrap() = Some(handle))).meanwhile(
                |running| {
                    assert!(!running.is_complete());
                    end(stored.lock().unwrap().take().unwrap());
                },
            )
        };
        assert_eq!(through(|handle| handle.value(1)), Outcome::Value(1));
        assert_eq!(through(|handle| handle.error("e")), Outcome::Error("e"));
        assert_eq!(through(Completion::stopped), Outcome::Stopped);
        assert_eq!(through(drop), Outcome::Stopped);
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome_whatever_the_handle_says() {
        let boom = || Outcome::Panicked(Panic::new("boom"));
        let drops_it = from_callback(|_: Handle| panic!("boom"));
        assert_eq!(Connected::new(drops_it).outcome(), boom());
        let used_it = from_callback(|handle: Handle| {
            handle.value(1);
            panic!("boom")
        });
        assert_eq!(Connected::new(used_it).outcome(), boom());
        let stored = Mutex::new(None);
        let gave_it_away = from_callback(|handle: Handle| {
            stored.lock().unwrap().replace(handle);
            panic!("boom")
        });
        let outcome = Connected::new(gave_it_away).meanwhile(|running| {
            assert!(!running.is_complete(), "the handle still exists");
            let handle = stored.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            handle.unwrap().value(1);
        });
        assert_eq!(outcome, boom());
    }

    #[test]
    fn the_handle_sees_a_stop_before_the_start_and_while_it_runs() {
        let sender = from_callback(|handle: Completion<bool>| {
            let requested = handle.stop_requested();
            handle.value(requested);
        });
        assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Value(true));
        let source = StopSource::new();
        let stored = Mutex::new(None);
        let sender = from_callback(|handle: Handle| *stored.lock().unwrap() = Some(handle));
        let outcome = Connected::stoppable(sender, &source).meanwhile(|running| {
            let handle = stored.lock().unwrap().take().unwrap();
            assert!(!handle.stop_requested());
            source.request_stop(StopReason::Requested);
            assert!(handle.stop_requested());
            assert_eq!(handle.stop_token(), source.token());
            assert!(!running.is_complete(), "a stop is for the holder of the handle to honour");
            drop(handle);
        });
        assert_eq!(outcome, Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(from_callback(move |_: Handle| unreachable!("{token:?}"))));
        assert_eq!(count.dropped(), 1);
    }

    #[test]
    fn another_thread_completes_while_the_function_still_runs() {
        let (handles, taken) = mpsc::channel::<Completion<i32>>();
        let other = thread::spawn(move || taken.into_iter().for_each(|handle| handle.value(7)));
        for round in 0..if cfg!(miri) { 10 } else { 4000 } {
            let sent = handles.clone();
            let sender = from_callback(move |handle| {
                sent.send(handle).unwrap();
                if round % 8 == 0 {
                    Panic::new("boom").resume();
                }
            });
            let outcome = Connected::new(sender).start().wait();
            let expected =
                if round % 8 == 0 { Outcome::Panicked(Panic::new("boom")) } else { Outcome::Value(7) };
            assert_eq!(outcome, expected);
        }
        drop(handles);
        other.join().unwrap();
    }
}
