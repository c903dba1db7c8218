//! `Sleep` as a sender.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::mem::offset_of;
use core::pin::Pin;
use core::ptr::NonNull;
use std::time::Instant;

use crate::{Completes, Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};
use convoke_core::raw::{ArmedTimer, Call, Header, IdleTimer, OnStop, RawCallback, Runnable, Timer, Timers};
use convoke_core::raw::{WorkKind, WorkRef, address_of_timers, dispatch_contained, post_contained};
use convoke_core::{Env, Never, Outcome, Panic, StopReason};

use convoke_exec::raw::When;
use convoke_exec::time::{Sleep, timers_of};

// SAFETY: rules 1 and 2 of `Sender`: the receiver is completed once and last: by `start` if it need not wait,
// else by the runnable that the winner of the race posts after it has removed timer and callback (rule 3 of
// `SleepOperation`). Rule 3: both run on the executor of the environment.
#[diagnostic::do_not_recommend]
unsafe impl Sender for Sleep {
    type Value = ();
    type Error = Never;
    const COMPLETES: Completes = Completes::Here;
    type Operation<R: Receiver<(), Never>> = SleepOperation<R>;

    fn connect<R: Receiver<(), Never>>(self, receiver: R) -> SleepOperation<R> {
        SleepOperation {
            header: Header::new(const { &WorkKind::new(SleepOperation::<R>::arrived) }),
            timer: Timer::new(SleepOperation::<R>::called),
            race: AtomicU8::new(0),
            when: self.when(),
            parts: UnsafeCell::new(Parts { timers: None, callback: None, receiver: Some(receiver) }),
            _pinned: PhantomPinned,
        }
    }
}

/// Bits of `race`. Each participant sets its own. The one that adds the second bit to a value that has
/// `STARTED` wins.
const STARTED: u8 = 1;
/// The timer fired because its time has come.
const DUE: u8 = 2;
/// The timer was released because its clock has ended.
const ENDED: u8 = 4;
/// A stop was requested.
const STOPPED: u8 = 8;

/// The operation of a sleep.
///
/// Three participants race for it: `start`, the call of the timer, and the stop callback.
/// 1. The parts belong to `start` until it has set `STARTED`, then to the winner, then to the runnable.
/// 2. The winner is the participant that is the first to set its bit after `STARTED`; or `start`, if another
///    bit was set before `STARTED`. The losers touch nothing after they have set their bit.
/// 3. The winner removes the callback, and disarms the timer unless that has fired. Both wait for a loser
///    that is still running, so afterwards the winner is the only user.
///
/// It is not the rendezvous of a transfer (`convoke-io/src/transfer.rs`), which waits for a callback that is cancelling: here the
/// first two participants decide, and the third is removed.
#[repr(C)]
pub struct SleepOperation<R> {
    // First, so that a pointer to the header is a pointer to the operation.
    header: Header,
    timer: Timer,
    race: AtomicU8,
    when: When,
    parts: UnsafeCell<Parts<R>>,
    _pinned: PhantomPinned,
}

struct Parts<R> {
    /// The timers that the timer was armed with, if it was. Borrowed from the receiver's environment.
    timers: Option<NonNull<dyn Timers>>,
    callback: Option<RawCallback<Stop<R>>>,
    receiver: Option<R>,
}

// SAFETY: rule 1: the parts have one user at a time. The timers are `Sync`, and borrowed for as long as the
// operation waits.
unsafe impl<R: Send> Send for SleepOperation<R> {}

/// A participant that has not set its bit yet: the right to enter the race, once.
///
/// Rule 3 of the operation: it is alive until each participant has set its bit or was removed.
struct Participant<R>(WorkRef<SleepOperation<R>>);

// SAFETY: the operation is `Send`, and its rules say what the three participants share.
unsafe impl<R: Send> Send for Participant<R> {}

impl<R: Receiver<(), Never>> Participant<R> {
    /// Sets the bit of this participant, and lets it finish the operation if it has won. It touches nothing
    /// afterwards.
    fn enter_race(self, bit: u8) {
        let before = self.0.race.fetch_or(bit, Ordering::AcqRel);
        let won = if bit == STARTED { before != 0 } else { before == STARTED };
        if won {
            // SAFETY: rule 2: the caller is the winner, once.
            unsafe { SleepOperation::post(self.0.pointer(), before | bit, bit & (DUE | ENDED) != 0) };
        }
    }
}

/// The stop callback.
struct Stop<R>(Participant<R>);

impl<R: Receiver<(), Never>> OnStop for Stop<R> {
    fn on_stop(self, _: StopReason) {
        self.0.enter_race(STOPPED);
    }
}

impl<R: Receiver<(), Never>> Operation for SleepOperation<R> {
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: the operation is pinned until the receiver is completed, and the environment outlives it.
        // Rule 1: the parts are ours until `enter_race`, and nothing is touched after it. The callback and
        // the timer get a pointer that covers the whole operation.
        unsafe {
            let participant = || Participant(WorkRef::new(this));
            let parts = &mut *this.as_ref().parts.get();
            let Some(receiver) = &parts.receiver else { return };
            let env = receiver.env();
            if env.stop().stop_requested() {
                return Self::complete(this, Outcome::Stopped);
            }
            // Caught: the executor may be implemented by the program.
            let (timers, now) = match Panic::catch(|| clock_of(env)) {
                Ok(found) => found,
                Err(panic) => return Self::complete(this, Outcome::Panicked(panic)),
            };
            let at = this.as_ref().when.from(now);
            if at.is_some_and(|at| at <= now) {
                return Self::complete(this, Outcome::Value(()));
            }
            if env.stop().stop_possible() {
                parts.callback.insert(RawCallback::new(Stop(participant()))).register(env.stop());
            }
            if let Some(at) = at {
                parts.timers = Some(address_of_timers(timers));
                timers.arm(IdleTimer::new(Self::timer(this)), at);
            }
            participant().enter_race(STARTED);
        }
    }
}

/// Returns the timers of an environment, and the time on their clock.
fn clock_of(env: &Env) -> (&dyn Timers, Instant) {
    let timers = timers_of(env);
    (timers, timers.now())
}

impl<R: Receiver<(), Never>> SleepOperation<R> {
    /// Returns a pointer to the timer that may be turned back into one to the whole operation.
    fn timer(this: NonNull<Self>) -> NonNull<Timer> {
        // SAFETY: the offset is that of a field of the operation.
        unsafe { this.cast::<u8>().add(offset_of!(Self, timer)).cast() }
    }

    /// Enters the race for the timer.
    ///
    /// # Safety
    /// Called once, by the timers, with the timer that they were given.
    unsafe fn called(timer: NonNull<Timer>, call: Call) {
        let bit = if call == Call::Run { DUE } else { ENDED };
        // SAFETY: `timer` made the pointer from one to the whole operation. The operation is alive by rule 3:
        // the winner waits for the call of the timer, and if the call wins, the operation ends after it.
        let operation = unsafe { WorkRef::new(timer.cast::<u8>().sub(offset_of!(Self, timer)).cast()) };
        Participant::<R>(operation).enter_race(bit);
    }

    /// Removes the callback and the timer, and posts the operation to its executor. `called` is true in the
    /// call of the timer.
    ///
    /// # Safety
    /// Called by the winner, once.
    unsafe fn post(this: NonNull<Self>, race: u8, called: bool) {
        // SAFETY: rules 1 and 3: the caller is the winner. Removing the callback from inside it, or the
        // timer from inside its call, returns at once. The executor may run the operation, and so free it,
        // while `post_contained` or `dispatch_contained` still runs: the handle is our own.
        unsafe {
            let parts = this.as_ref().parts.get();
            if let Some(timers) = (*parts).timers
                && race & (DUE | ENDED) == 0
            {
                timers.as_ref().disarm(ArmedTimer::new(Self::timer(this)));
            }
            (*parts).callback = None;
            let Some(receiver) = &(*parts).receiver else { return };
            // Caught: the executor may be implemented by the program.
            let executor = match Panic::catch(|| receiver.env().executor().clone()) {
                Ok(executor) => executor,
                Err(panic) => return Self::complete(this, Outcome::Panicked(panic)),
            };
            let runnable = Runnable::new(this.cast());
            if called {
                // Through the queue even on its own thread: the caller has other timers to fire.
                post_contained(executor, runnable);
            } else if let Some(runnable) = dispatch_contained(executor, runnable) {
                runnable.run();
            }
        }
    }

    /// Completes the receiver on the executor.
    ///
    /// # Safety
    /// Called once, with the header of a live operation, by its runnable.
    unsafe fn arrived(header: NonNull<Header>, call: Call) {
        let this = header.cast::<Self>();
        // SAFETY: the header is the first field of the operation (`repr(C)`). Rule 1: the parts belong to the
        // runnable now. Relaxed: the winner has read the bits, and it posted this runnable.
        unsafe {
            let due = this.as_ref().race.load(Ordering::Relaxed) & (DUE | STOPPED) == DUE;
            let parts = &*this.as_ref().parts.get_const();
            let stopped =
                parts.receiver.as_ref().is_some_and(|receiver| receiver.env().stop().stop_requested());
            let in_time = due && call == Call::Run && !stopped;
            Self::complete(this, if in_time { Outcome::Value(()) } else { Outcome::Stopped });
        }
    }

    /// Completes the receiver.
    ///
    /// # Safety
    /// Called by the owner of the parts (rule 1), which touches nothing afterwards.
    unsafe fn complete(this: NonNull<Self>, outcome: Outcome<(), Never>) {
        // SAFETY: rule 1: the caller owns the parts.
        if let Some(receiver) = unsafe { (*this.as_ref().parts.get()).receiver.take() } {
            receiver.complete(outcome);
        }
    }
}

impl<R> fmt::Debug for SleepOperation<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SleepOperation").field("when", &self.when).finish_non_exhaustive()
    }
}
