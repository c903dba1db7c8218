//! The operation behind `repeat_until`, `repeat_n` and `retry`: one child after another, in the same memory,
//! in a loop that does not grow the stack however many of them complete at once.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use super::trampoline::Enclosing;
use crate::operation::Handshake;
use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::Slot;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::{Env, Outcome, Panic};

/// The maker and judge of rounds. Both functions may call closures of the program; the operation catches
/// their panics.
pub trait Rounds: Send {
    /// The work of one round.
    type Round: Sender;
    /// The type of the value that the whole completes with.
    type Value;
    /// The type of the error that the whole fails with.
    type Error;

    /// Makes the next round, or returns the final outcome.
    fn next(&mut self) -> Result<Self::Round, Outcome<Self::Value, Self::Error>>;

    /// Judges the outcome of a round: returns the final outcome, or `None` to continue.
    fn after(&mut self, outcome: OutcomeOf<Self::Round>) -> Option<Outcome<Self::Value, Self::Error>>;
}

/// The operation of rounds.
///
/// 1. One round runs at a time. While it runs, its operation and receiver are the only users of the slot and
///    of `outcome`, and `receiver` is read-only.
/// 2. The thread that started the round and the one that completes it meet at `rendezvous`. The second to
///    arrive is then the only user of everything, and continues. If rounds are inline, which is known at
///    compile time, both are the same thread and need no rendezvous.
/// 3. The receiver is taken once, by the thread that continues and finds that it was the last round. Nothing
///    is touched afterwards.
pub struct InRounds<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    slot: Slot<<L::Round as Sender>::Operation<RoundReceiver<L, R>>>,
    rounds: UnsafeCell<L>,
    outcome: UnsafeCell<Option<OutcomeOf<L::Round>>>,
    rendezvous: Handshake,
    receiver: UnsafeCell<Option<R>>,
    _pinned: PhantomPinned,
}

// SAFETY: rules 1 and 2 give everything to one thread at a time. The outcome of a round may pass from one
// thread to another: `new`, the only constructor, requires that it is `Send`.
unsafe impl<L, R> Send for InRounds<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
}

// SAFETY: rules 1 and 2 give everything to one thread at a time, so nothing is shared but the receiver's
// environment, which is `Sync`.
unsafe impl<L, R> Sync for InRounds<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
}

impl<L, R> InRounds<L, R>
where
    L: Rounds<Round: Sender<Value: Send, Error: Send>>,
    R: Receiver<L::Value, L::Error>,
{
    #[inline]
    pub(crate) fn new(rounds: L, receiver: R) -> Self {
        Self {
            slot: Slot::new(),
            rounds: UnsafeCell::new(rounds),
            outcome: UnsafeCell::new(None),
            rendezvous: Handshake::new(),
            receiver: UnsafeCell::new(Some(receiver)),
            _pinned: PhantomPinned,
        }
    }
}

impl<L, R> InRounds<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    const INLINE: bool = <L::Round as Sender>::COMPLETES.is_inline();

    /// Runs rounds until one does not complete at once, or the receiver is completed.
    ///
    /// # Safety
    /// Rule 2: the caller is the only user of the operation, which is pinned, and touches nothing of it
    /// afterwards.
    #[inline]
    unsafe fn resume(this: NonNull<Self>) {
        // SAFETY: rule 2: this thread is the only user at the beginning of each round: in the first by the
        // caller's promise, later because `arrive` returned true, or because the round is inline.
        unsafe {
            while let Some(round) = Self::next(this) {
                this.as_ref().rendezvous.reset();
                let slot = NonNull::from(&this.as_ref().slot);
                Slot::run(slot, || round.connect(RoundReceiver { operation: this }));
                // Rule 2: if the round has not completed, its completion continues from here.
                if !Self::INLINE && !this.as_ref().rendezvous.arrive() {
                    return;
                }
                if !Self::settle(this) {
                    return;
                }
            }
        }
    }

    /// Makes the next round. If there is none, completes the receiver and returns `None`.
    ///
    /// # Safety
    /// Rule 2: the caller is the only user. If it returns `None`, nothing may be touched (rule 3).
    #[inline]
    unsafe fn next(this: NonNull<Self>) -> Option<L::Round> {
        // SAFETY: rule 2: the caller is the only user.
        unsafe {
            let Self { receiver, rounds, .. } = this.as_ref();
            if (*receiver.get_const()).as_ref().is_some_and(|receiver| receiver.env().stop().stop_requested())
            {
                Self::complete(this, Outcome::Stopped);
                return None;
            }
            let rounds = rounds.get();
            match Panic::catch(|| (*rounds).next()) {
                Ok(Ok(round)) => return Some(round),
                Ok(Err(outcome)) => Self::complete(this, outcome),
                Err(panic) => Self::complete(this, Outcome::Panicked(panic)),
            }
            None
        }
    }

    /// Destroys the round that has ended and judges its outcome. Returns true to continue; false if it was
    /// the last round and the receiver has been completed.
    ///
    /// # Safety
    /// Rule 2: the caller is the only user, after a round has completed. If it returns false, nothing may be
    /// touched (rule 3).
    #[inline]
    unsafe fn settle(this: NonNull<Self>) -> bool {
        // SAFETY: rule 2: the caller is the only user, and the round has completed.
        unsafe {
            let Self { slot, rounds, outcome, .. } = this.as_ref();
            let Some(outcome) = (*outcome.get()).take() else { return false };
            let outcome = slot.clear_after(outcome);
            let rounds = rounds.get();
            match Panic::catch(|| (*rounds).after(outcome)) {
                Ok(None) => return true,
                Ok(Some(end)) => Self::complete(this, end),
                Err(panic) => Self::complete(this, Outcome::Panicked(panic)),
            }
            false
        }
    }

    /// Completes the receiver.
    ///
    /// # Safety
    /// Rule 3: the caller is the only user, and touches nothing afterwards.
    #[inline]
    unsafe fn complete(this: NonNull<Self>, outcome: Outcome<L::Value, L::Error>) {
        // SAFETY: rule 3: the caller is the only user. The receiver may free the operation: nothing is
        // touched after its completion, and the operation is taken by pointer.
        if let Some(receiver) = unsafe { (*this.as_ref().receiver.get()).take() } {
            receiver.complete(outcome);
        }
    }
}

impl<L, R> Operation for InRounds<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: nothing has started, so this call is the only user; the operation is pinned.
        unsafe { Self::resume(NonNull::from(self.as_ref().get_ref())) };
    }
}

/// The receiver of a round: a pointer to the operation.
pub struct RoundReceiver<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    operation: NonNull<InRounds<L, R>>,
}

// SAFETY: the operation is `Send`, and rules 1 and 2 say when the receiver may use it.
unsafe impl<L, R> Send for RoundReceiver<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
}

#[diagnostic::do_not_recommend]
impl<L, R> Receiver<<L::Round as Sender>::Value, <L::Round as Sender>::Error> for RoundReceiver<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    #[inline]
    fn complete(self, outcome: OutcomeOf<L::Round>) {
        let this = self.operation;
        // SAFETY: rule 1: the round is running, so `outcome` is ours and the operation is alive. Rule 2:
        // after `arrive` returned true this thread is the only user.
        unsafe {
            *this.as_ref().outcome.get() = Some(outcome);
            if !InRounds::<L, R>::INLINE && this.as_ref().rendezvous.arrive() && InRounds::settle(this) {
                InRounds::resume(this);
            }
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: rule 1: the round is running, so the operation is alive and its receiver is not moved.
        unsafe {
            (*self.operation.as_ref().receiver.get_const())
                .as_ref()
                .expect("the receiver is taken after the last round")
                .env()
        }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: rule 1: the round is running, so the operation is alive and its receiver is not moved.
        unsafe { (*self.operation.as_ref().receiver.get()).as_ref() }.and_then(Receiver::enclosing)
    }
}

impl<L, R> fmt::Debug for InRounds<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InRounds").finish_non_exhaustive()
    }
}

impl<L, R> fmt::Debug for RoundReceiver<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoundReceiver").finish_non_exhaustive()
    }
}
