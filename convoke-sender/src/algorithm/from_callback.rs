//! `from_callback(f)`: hands the duty to complete to code that knows nothing of senders.

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

/// A sender that calls `f` with a [`Completion`] and completes with what that handle is given, whenever and on
/// whichever thread that happens.
///
/// - *Completes with* the outcome given to the handle; stopped if the handle is dropped. If `f` panics: panicked, as
///   soon as the handle has been used or dropped too.
/// - *If dropped* before it was started, `f` is dropped uncalled.
/// - *Runs on* the thread that starts it, for `f`; it completes where the handle is used, or, if that was before `f`
///   has returned, where `f` returns.
///
/// A stop request does nothing by itself: whoever holds the handle asks [`stop_requested`](Completion::stop_requested)
/// or listens to [`stop_token`](Completion::stop_token). A handle that is leaked is work that never ends.
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

/// See [`from_callback()`].
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

// SAFETY: the second to come to the meeting completes the receiver, as the last thing he does.
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
            meeting: Meeting {
                returned: Handshake::new(),
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

/// The duty to complete a piece of work, once. It may be moved to any thread; dropping it completes as stopped.
///
/// It is one pointer, into the operation, which lives until it was completed.
#[must_use = "dropping a completion completes its work as stopped"]
pub struct Completion<V, E = Never> {
    meeting: NonNull<Meeting<V, E>>,
}

// SAFETY: the operation is `Send`, and what the handle touches there nobody else does (rules 1 and 2). The outcome may
// be carried to another thread: V and E are `Send`.
unsafe impl<V: Send, E: Send> Send for Completion<V, E> {}

impl<V, E> Completion<V, E> {
    /// Completes the work.
    #[inline]
    pub fn complete(self, outcome: Outcome<V, E>) {
        let meeting = ManuallyDrop::new(self).meeting;
        // SAFETY: we gave up the one handle, so this happens once.
        unsafe { Meeting::complete(meeting, outcome) };
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

    /// The stop token of the work, to keep.
    pub fn stop_token(&self) -> StopToken {
        self.env().stop_token()
    }

    /// Whether the work was asked to stop.
    pub fn stop_requested(&self) -> bool {
        self.env().stop().stop_requested()
    }

    fn env(&self) -> &Env {
        // SAFETY: the operation is alive while we are, and the receiver in its place (rule 2).
        unsafe { (self.meeting.as_ref().env)(self.meeting).as_ref() }
    }
}

impl<V, E> Drop for Completion<V, E> {
    fn drop(&mut self) {
        // SAFETY: the one handle ends here, unused.
        unsafe { Meeting::complete(self.meeting, Outcome::Stopped) };
    }
}

/// The part of the operation that the handle knows. `start` and the handle meet here, and the second of the two
/// delivers: so the operation is not destroyed while `f` still runs, and a panic of `f` is not lost.
///
/// 1. `outcome` is written by whoever ends the handle, `panic` by `start`, each before it comes to the meeting; both
///    are read by the second.
/// 2. The receiver stays in its place until the second takes it. Before that only the handle looks at it.
struct Meeting<V, E> {
    returned: Handshake,
    outcome: UnsafeCell<Option<Outcome<V, E>>>,
    env: unsafe fn(NonNull<Self>) -> NonNull<Env>,
    finish: unsafe fn(NonNull<Self>),
}

impl<V, E> Meeting<V, E> {
    /// # Safety
    /// Called once, by the end of the handle.
    unsafe fn complete(this: NonNull<Self>, outcome: Outcome<V, E>) {
        // SAFETY: rule 1, and the operation is alive until the meeting has happened.
        unsafe {
            *this.as_ref().outcome.get() = Some(outcome);
            Self::arrive(this);
        }
    }

    /// # Safety
    /// Called once by `start` and once by the end of the handle, neither of which touches anything afterwards.
    unsafe fn arrive(this: NonNull<Self>) {
        // SAFETY: the operation is alive until the second has come; the second is alone with it.
        unsafe {
            if this.as_ref().returned.arrive() {
                (this.as_ref().finish)(this);
            }
        }
    }
}

/// The operation of [`from_callback()`].
#[repr(C)]
pub struct FromCallbackOperation<F, V, E, R> {
    // First, so that a pointer to it is a pointer to the operation.
    meeting: Meeting<V, E>,
    f: Option<F>,
    panic: Option<Panic>,
    receiver: Option<R>,
    _pinned: PhantomPinned,
}

impl<F, V, E, R: Receiver<V, E>> FromCallbackOperation<F, V, E, R> {
    /// # Safety
    /// Called by the handle, with the meeting of a live operation.
    unsafe fn env(meeting: NonNull<Meeting<V, E>>) -> NonNull<Env> {
        // SAFETY: the meeting is the first field of the operation (`repr(C)`); rule 2. Only the receiver is borrowed:
        // `start` may write the panic at the same time.
        unsafe {
            let receiver = &(*meeting.cast::<Self>().as_ptr()).receiver;
            NonNull::from(receiver.as_ref().expect("taken after the handle has ended").env())
        }
    }

    /// # Safety
    /// Called by the second to come to the meeting.
    unsafe fn finish(meeting: NonNull<Meeting<V, E>>) {
        // SAFETY: the meeting is the first field of the operation (`repr(C)`); the second is alone with it.
        let this = unsafe { &mut *meeting.cast::<Self>().as_ptr() };
        let outcome = this.meeting.outcome.get_mut().take();
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
        // SAFETY: nothing is moved out of its place but what is not structurally pinned.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: we are pinned until the receiver was completed, which happens at the meeting, to which both the handle
        // and we come. Rule 1: the panic is ours to write until then.
        unsafe {
            let Some(f) = (*this.as_ptr()).f.take() else { return };
            let completion = Completion { meeting: this.cast() };
            if let Err(panic) = Panic::catch(|| f(completion)) {
                (*this.as_ptr()).panic = Some(panic);
            }
            Meeting::arrive(this.cast::<Meeting<V, E>>());
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
            let kept = Mutex::new(None);
            Connected::new(from_callback(|handle: Handle| *kept.lock().unwrap() = Some(handle))).meanwhile(
                |running| {
                    assert!(!running.is_complete());
                    end(kept.lock().unwrap().take().unwrap());
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
        let kept = Mutex::new(None);
        let gave_it_away = from_callback(|handle: Handle| {
            kept.lock().unwrap().replace(handle);
            panic!("boom")
        });
        let outcome = Connected::new(gave_it_away).meanwhile(|running| {
            assert!(!running.is_complete(), "somebody still holds the handle");
            let handle = kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
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
        let kept = Mutex::new(None);
        let sender = from_callback(|handle: Handle| *kept.lock().unwrap() = Some(handle));
        let outcome = Connected::stoppable(sender, &source).meanwhile(|running| {
            let handle = kept.lock().unwrap().take().unwrap();
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
