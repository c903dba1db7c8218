//! A sleep as a sender.

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
use convoke_core::raw::{Call, Header, OnStop, RawCallback, Runnable, Timer, Timers, WorkKind};
use convoke_core::raw::{dispatch_contained, post_contained};
use convoke_core::{Env, Never, Outcome, Panic, StopReason};

use convoke_exec::raw::When;
use convoke_exec::time::{Sleep, timers_of};

// SAFETY: the receiver is completed by one: by `start`, if it does not wait, or by the runnable that the winner of the race
// posts when it is alone with the operation; as the last thing that is done. Both are on the executor.
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

/// The bits of the race. Everybody sets his own; who makes two out of one, `STARTED` and another, has won.
const STARTED: u8 = 1;
/// The timer was called, because its time has come.
const DUE: u8 = 2;
/// The timer was called, because there will be no time any more.
const ENDED: u8 = 4;
/// A stop was requested.
const STOPPED: u8 = 8;

/// The operation of [`sleep()`].
///
/// Three meet here: `start`, the timer's call, and the stop callback.
/// 1. The parts are `start`'s until it has set `STARTED`, then the winner's, then the runnable's.
/// 2. The winner is whoever sees, in what he sets his bit in, that he is the first after `STARTED`; or `start`, if somebody
///    was there before it. All others leave without touching anything any more.
/// 3. The winner takes back the callback, and the timer unless that has been there. Both wait for losers that have not come
///    yet; so he is alone.
#[repr(C)]
pub struct SleepOperation<R> {
    // First, so that a pointer to it is a pointer to the operation.
    header: Header,
    timer: Timer,
    race: AtomicU8,
    when: When,
    parts: UnsafeCell<Parts<R>>,
    _pinned: PhantomPinned,
}

struct Parts<R> {
    /// What the timer was armed by, if it was. Lent by the receiver's environment.
    timers: Option<NonNull<dyn Timers>>,
    callback: Option<RawCallback<Stop<R>>>,
    receiver: Option<R>,
}

// SAFETY: rule 1: the parts have one user at a time; the timers are `Sync`, and lent for as long as we wait.
unsafe impl<R: Send> Send for SleepOperation<R> {}

/// The stop callback: it leads back to the operation.
struct Stop<R>(NonNull<SleepOperation<R>>);

// SAFETY: the operation is `Send`, and the callback is one of the three that share it by its rules.
unsafe impl<R: Send> Send for Stop<R> {}

impl<R: Receiver<(), Never>> OnStop for Stop<R> {
    fn on_stop(self, _: StopReason) {
        // SAFETY: the operation is there: the winner waits for us, and if that is us, it ends after.
        unsafe { SleepOperation::meet(self.0, STOPPED) };
    }
}

impl<R: Receiver<(), Never>> Operation for SleepOperation<R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of its place but the receiver, which is not structurally pinned.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: we are pinned until the receiver was completed, and its environment outlives us. Rule 1: the parts are
        // ours until `meet`, and after that nothing is touched. What the callback and the timer are given is a pointer to
        // all of us.
        unsafe {
            let parts = &mut *this.as_ref().parts.get();
            let Some(receiver) = &parts.receiver else { return };
            let env = receiver.env();
            if env.stop().stop_requested() {
                return Self::complete(this, Outcome::Stopped);
            }
            // It may be an executor of the program's.
            let (timers, now) = match Panic::catch(|| clock_of(env)) {
                Ok(found) => found,
                Err(panic) => return Self::complete(this, Outcome::Panicked(panic)),
            };
            let at = this.as_ref().when.from(now);
            if at.is_some_and(|at| at <= now) {
                return Self::complete(this, Outcome::Value(()));
            }
            if env.stop().stop_possible() {
                parts.callback.insert(RawCallback::new(Stop(this))).register(env.stop());
            }
            if let Some(at) = at {
                parts.timers = Some(lent(timers));
                timers.arm(Self::timer(this), at);
            }
            Self::meet(this, STARTED);
        }
    }
}

/// The timers, and what their clock says.
fn clock_of(env: &Env) -> (&dyn Timers, Instant) {
    let timers = timers_of(env);
    (timers, timers.now())
}

/// The address of timers, kept for as long as the operation waits.
fn lent(timers: &dyn Timers) -> NonNull<dyn Timers> {
    // SAFETY: the same pointer; only the compiler's knowledge of how long it is good is given up. It is used until the
    // receiver is completed, and the environment that it is lent from lives longer.
    unsafe { core::mem::transmute::<NonNull<dyn Timers + '_>, NonNull<dyn Timers>>(NonNull::from(timers)) }
}

impl<R: Receiver<(), Never>> SleepOperation<R> {
    /// The timer, by a pointer that may be taken back to all of the operation.
    fn timer(this: NonNull<Self>) -> NonNull<Timer> {
        // SAFETY: the offset is that of a field.
        unsafe { this.cast::<u8>().add(offset_of!(Self, timer)).cast() }
    }

    /// # Safety
    /// Called once, by the timers, with what they were given.
    unsafe fn called(timer: NonNull<Timer>, call: Call) {
        let bit = if call == Call::Run { DUE } else { ENDED };
        // SAFETY: the pointer was made by `timer`, from one to all of the operation, which is there: the winner waits for
        // us, and if that is us, it ends after.
        unsafe { Self::meet(timer.cast::<u8>().sub(offset_of!(Self, timer)).cast(), bit) };
    }

    /// One of the three has come.
    ///
    /// # Safety
    /// Once with each bit, by the one it belongs to, who touches nothing afterwards.
    unsafe fn meet(this: NonNull<Self>, bit: u8) {
        // SAFETY: the caller is one of the three, and the last has not left.
        let before = unsafe { this.as_ref() }.race.fetch_or(bit, Ordering::AcqRel);
        let won = if bit == STARTED { before != 0 } else { before == STARTED };
        if won {
            // SAFETY: rule 2.
            unsafe { Self::go_home(this, before | bit, bit & (DUE | ENDED) != 0) };
        }
    }

    /// Takes back what others know of the operation, and sends it to its executor. `called` says that this is the timer's
    /// call.
    ///
    /// # Safety
    /// By the winner, once.
    unsafe fn go_home(this: NonNull<Self>, race: u8, called: bool) {
        // SAFETY: rules 1 and 3. Taking back from inside of the callback, or of the timer's call, returns at once. The
        // executor may run us, and so destroy us, while `post_last` or `dispatch` is still at work: the handle is our own.
        unsafe {
            let parts = this.as_ref().parts.get();
            if let Some(timers) = (*parts).timers
                && race & (DUE | ENDED) == 0
            {
                timers.as_ref().disarm(Self::timer(this));
            }
            (*parts).callback = None;
            let Some(receiver) = &(*parts).receiver else { return };
            // The executor may be one of the program's.
            let executor = match Panic::catch(|| receiver.env().executor().clone()) {
                Ok(executor) => executor,
                Err(panic) => return Self::complete(this, Outcome::Panicked(panic)),
            };
            let runnable = Runnable::new(this.cast());
            if called {
                // Through the queue even if we are there: other timers wait.
                post_contained(executor, runnable);
            } else if let Some(runnable) = dispatch_contained(executor, runnable) {
                runnable.run();
            }
        }
    }

    /// # Safety
    /// Called once, with the header of a live operation, by its runnable.
    unsafe fn arrived(header: NonNull<Header>, call: Call) {
        let this = header.cast::<Self>();
        // SAFETY: the header is the first field of the operation (`repr(C)`); rule 1: it is ours now. Relaxed: the winner
        // has seen the bits, and it was he who posted us.
        unsafe {
            let due = this.as_ref().race.load(Ordering::Relaxed) & (DUE | STOPPED) == DUE;
            let parts = &*this.as_ref().parts.get_const();
            let stopped =
                parts.receiver.as_ref().is_some_and(|receiver| receiver.env().stop().stop_requested());
            let in_time = due && call == Call::Run && !stopped;
            Self::complete(this, if in_time { Outcome::Value(()) } else { Outcome::Stopped });
        }
    }

    /// # Safety
    /// By the one whom the parts belong to, who touches nothing afterwards.
    unsafe fn complete(this: NonNull<Self>, outcome: Outcome<(), Never>) {
        // SAFETY: the caller's.
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
