//! The operation behind `repeat_until`, `repeat_n` and `retry`: one child after another, in the same place, in a loop
//! that does not grow the stack however many of them complete at once.

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

/// What is done round after round. Both functions may call the program's closures; their panics are caught outside.
pub trait Rounds: Send {
    /// The work of one round.
    type Round: Sender;
    /// What it all completes with.
    type Value;
    /// What it all fails with.
    type Error;

    /// Makes the next round, or says how it all ends.
    fn next(&mut self) -> Result<Self::Round, Outcome<Self::Value, Self::Error>>;

    /// Looks at how a round ended, and says how it all ends, if it does.
    fn after(&mut self, outcome: OutcomeOf<Self::Round>) -> Option<Outcome<Self::Value, Self::Error>>;
}

/// The operation of rounds.
///
/// 1. One round at a time. While it runs, its operation and receiver use the slot and `outcome`; nobody else does,
///    and `receiver` is only read.
/// 2. The thread that started the round and the one that completes it meet at `met`; the second is then alone with
///    everything and goes on. If rounds are inline, which is known to the compiler, they are the same and need not meet.
/// 3. The receiver is taken once, by whoever goes on and finds that it was the last round. Nothing is touched then.
pub struct InRounds<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    slot: Slot<<L::Round as Sender>::Operation<RoundReceiver<L, R>>>,
    rounds: UnsafeCell<L>,
    outcome: UnsafeCell<Option<OutcomeOf<L::Round>>>,
    met: Handshake,
    receiver: UnsafeCell<Option<R>>,
    _pinned: PhantomPinned,
}

// SAFETY: the rules give everything to one thread at a time. The outcome of a round may pass from one thread to
// another: the makers of rounds ask for `Send`, in the bounds of their senders.
unsafe impl<L, R> Send for InRounds<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
}

// SAFETY: as above.
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
            met: Handshake::new(),
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

    /// Runs rounds until one does not complete at once, or all is done.
    ///
    /// # Safety
    /// Rule 2: the caller is alone with the operation, which is pinned, and touches nothing of it afterwards.
    #[inline]
    unsafe fn go_on(this: NonNull<Self>) {
        // SAFETY: we are alone at the beginning of each turn: by the caller's promise, or by the meeting.
        unsafe {
            while let Some(round) = Self::next(this) {
                this.as_ref().met.reset();
                let slot = NonNull::from(&this.as_ref().slot);
                Slot::run(slot, || round.connect(RoundReceiver { operation: this }));
                // Rule 2: if the round has not completed, whoever completes it goes on from here.
                if !Self::INLINE && !this.as_ref().met.arrive() {
                    return;
                }
                if !Self::settle(this) {
                    return;
                }
            }
        }
    }

    /// Makes the next round. If there is none, completes and returns nothing.
    ///
    /// # Safety
    /// Rule 2; if it returns nothing, rule 3.
    #[inline]
    unsafe fn next(this: NonNull<Self>) -> Option<L::Round> {
        // SAFETY: rule 2: we are alone.
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

    /// Destroys the round that has ended and judges its outcome. True: go on. False: it was the last, and all has
    /// been completed.
    ///
    /// # Safety
    /// Rule 2, after a round has completed; if it returns false, rule 3.
    #[inline]
    unsafe fn settle(this: NonNull<Self>) -> bool {
        // SAFETY: rule 2: we are alone, and the child has completed.
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

    /// # Safety
    /// Rule 3.
    #[inline]
    unsafe fn complete(this: NonNull<Self>, outcome: Outcome<L::Value, L::Error>) {
        // SAFETY: rule 3: we are alone, and this is the end. The receiver may free the operation: nothing is touched
        // once it is completed, and it was taken by pointer.
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
        // SAFETY: nothing was started yet, so we are alone; we are pinned.
        unsafe { Self::go_on(NonNull::from(self.as_ref().get_ref())) };
    }
}

/// The receiver of a round: it leads back to the operation.
pub struct RoundReceiver<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    operation: NonNull<InRounds<L, R>>,
}

// SAFETY: the operation is `Send`, and the rules say when we may use it.
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
        // SAFETY: rule 1: the round is running, so `outcome` is ours and the operation is alive; after the meeting, rule 2.
        unsafe {
            *this.as_ref().outcome.get() = Some(outcome);
            if !InRounds::<L, R>::INLINE && this.as_ref().met.arrive() && InRounds::settle(this) {
                InRounds::go_on(this);
            }
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: rule 1: the round is running, so the operation is alive and its receiver in place.
        unsafe {
            (*self.operation.as_ref().receiver.get_const())
                .as_ref()
                .expect("taken after the last round")
                .env()
        }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: rule 1: the round is running, so the operation is alive and its receiver in place.
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
