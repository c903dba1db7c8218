//! `from_callback(f)`: hands the completion to code that knows nothing of senders.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::pin::Pin;

pub use crate::operation::Completion;
use crate::operation::{Pending, Starting, Until};
use crate::{Receiver, Sender};
use convoke_core::{Outcome, Panic};

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

// SAFETY: rules 1 and 2 of `Sender`: `Pending` completes the receiver last, when `f` has returned and the
// handle has ended. Rule 3: `COMPLETES` is the default, `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<F, V, E> Sender for FromCallback<F, V, E>
where
    F: FnOnce(Completion<V, E>) + Send,
    V: Send,
    E: Send,
{
    type Value = V;
    type Error = E;
    type Operation<R: Receiver<V, E>> = Pending<CallOut<F, V, E, R>>;

    #[inline]
    fn connect<R: Receiver<V, E>>(self, receiver: R) -> Self::Operation<R> {
        let (f, panic) = (Cell::new(Some(self.f)), Cell::new(None));
        Pending::new(CallOut { f, panic, _ends: PhantomData }, receiver)
    }
}

/// The wait of [`from_callback()`]: the function, and its panic. The handle and the end of `f` meet, so the
/// operation is not freed while `f` still runs, and a panic of `f` is not lost.
pub struct CallOut<F, V, E, R> {
    f: Cell<Option<F>>,
    panic: Cell<Option<Panic>>,
    _ends: PhantomData<fn(V, E, R)>,
}

impl<F, V, E, R> Until for CallOut<F, V, E, R>
where
    F: FnOnce(Completion<V, E>) + Send,
    R: Receiver<V, E>,
{
    type Given = V;
    type GivenError = E;
    type Value = V;
    type Error = E;
    type Receiver = R;
    type Listening = ();

    fn begin(self: Pin<&Self>, _: &Starting<'_, Self>, completion: Completion<V, E>) {
        if let Some(f) = self.f.take() {
            self.panic.set(Panic::catch(|| f(completion)).err());
        }
    }

    fn finish(self: Pin<&mut Self>, outcome: Outcome<V, E>) -> Outcome<V, E> {
        match self.panic.take() {
            Some(panic) => Outcome::Panicked(panic).after_drop_of(outcome),
            None => outcome,
        }
    }
}

impl<F, V, E> fmt::Debug for FromCallback<F, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FromCallback")
    }
}

impl<F, V, E, R> fmt::Debug for CallOut<F, V, E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOut").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;
    use std::thread;

    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, all_outcomes, stopped_env};

    type Handle = Completion<i32, &'static str>;

    #[test]
    fn completes_with_what_the_handle_is_given_before_the_function_returns() {
        let twice = all_outcomes(1, "e").into_iter().zip(all_outcomes(1, "e"));
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
        for round in 0..if cfg!(miri) { 4 } else { 4000 } {
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
