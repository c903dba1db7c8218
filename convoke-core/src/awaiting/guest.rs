//! Awaiting what may complete later: the operation is a guest of the task, in memory of the task's, so that the future can
//! be dropped at any time.
//!
//! 1. Until the operation is started everything belongs to the future; afterwards `meeting` says who has what.
//! 2. `outcome` belongs to the operation until it has called `Meeting::complete`, then to the future, or, if that told it
//!    to free, to the operation still.
//! 3. `waker` belongs to the future except between `Complete::Wake` and `Meeting::left`.
//! 4. The memory is given back by the future when it has taken the outcome, or by whoever is told to free.
//! 5. `stop` is asked by the future alone, before it abandons the operation; so it does not go while it runs callbacks.

use core::alloc::Layout;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::{Context, Waker};

use super::meeting::{Abandon, Complete, Look, Meeting, Wait};
use crate::env::ScopedEnv;
use crate::frame::{Frame, Guest, HostRef, WakerMark};
use crate::operation::Slot;
use crate::stop::InPlaceStop;
use crate::sync::UnsafeCell;
use crate::{Env, OutcomeOf, Panic, Receiver, Sender, StopReason};

/// An operation in flight, and the right to its outcome.
pub(super) struct Running<S: Sender> {
    room: NonNull<Room<S>>,
    /// The waker that was put in place, to tell whether another one comes. Compared, never used.
    waker: WakerMark,
}

// SAFETY: what it leads to may be used from any thread by the rules above, if the outcome may.
unsafe impl<S: Sender<Value: Send, Error: Send>> Send for Running<S> {}

struct Room<S: Sender> {
    meeting: Meeting,
    guest: Guest,
    waker: UnsafeCell<Option<Waker>>,
    outcome: UnsafeCell<Option<OutcomeOf<S>>>,
    operation: Slot<S::Operation<GuestReceiver<S>>>,
    env: ScopedEnv,
    stop: InPlaceStop,
}

struct GuestReceiver<S: Sender> {
    room: NonNull<Room<S>>,
}

// SAFETY: by the rules above it may be completed on any thread, if the outcome may go from there to the future: `start` asks
// for that.
unsafe impl<S: Sender> Send for GuestReceiver<S> {}

impl<S: Sender<Value: Send, Error: Send> + 'static> Running<S> {
    /// Starts it. The outcome, if it has completed at once.
    pub(super) fn start(sender: S, frame: &Frame<'_>, cx: &Context<'_>) -> Result<OutcomeOf<S>, Self> {
        let host = frame.host();
        let guest = host.receive(Layout::new::<Room<S>>());
        let room = guest.memory.cast::<Room<S>>();
        // SAFETY: the memory fits and is ours alone. The environment of the host outlives its guests, and `stop` stays
        // beside it until both go. That `S` is `'static` is what lets the operation outlive the future.
        let this = unsafe {
            let stop = NonNull::new_unchecked(&raw mut (*room.as_ptr()).stop);
            room.write(Room {
                meeting: Meeting::new(),
                guest,
                waker: UnsafeCell::new(None),
                outcome: UnsafeCell::new(None),
                operation: Slot::new(),
                env: ScopedEnv::with_in_place_stop(host.env(), stop),
                stop: InPlaceStop::new(frame.deadline()),
            });
            room.as_ref()
        };
        if frame.is_asked_to_stop()
            && let Some(reason) = frame.stop_reason()
        {
            this.stop.request_stop(reason);
        }
        // SAFETY: rule 1; the room is pinned by being where it is, and stays until the operation has completed: rule 4.
        unsafe { Slot::run(NonNull::from(&this.operation), || sender.connect(GuestReceiver { room })) };
        let running = Self { room, waker: WakerMark::of(cx.waker()) };
        if this.meeting.completed_at_once() {
            return Ok(running.take_outcome(frame));
        }
        // SAFETY: rule 3.
        unsafe { *this.waker.get() = Some(cx.waker().clone()) };
        match this.meeting.wait() {
            Wait::Wait => Err(running),
            Wait::Done => Ok(running.take_outcome(frame)),
        }
    }

    /// The outcome, if it is there; a stop request is passed on.
    pub(super) fn look_again(mut self, frame: &Frame<'_>, cx: &Context<'_>) -> Result<OutcomeOf<S>, Self> {
        if self.room().meeting.look() == Look::NotYet {
            if frame.is_asked_to_stop()
                && let Some(reason) = frame.stop_reason()
            {
                // A callback that panics does so here, in the task that awaits; then we are abandoned on the way.
                self.room().stop.request_stop(reason);
            }
            if self.keep_waker(cx.waker()) == Look::NotYet {
                if frame.is_asked_to_stop() {
                    frame.hold();
                }
                return Err(self);
            }
        }
        Ok(self.take_outcome(frame))
    }

    /// Puts another waker in place if it is another.
    fn keep_waker(&mut self, waker: &Waker) -> Look {
        let room = self.room();
        let identity = WakerMark::of(waker);
        if self.waker == identity {
            return room.meeting.look();
        }
        // Before: the operation waits while we change it, and the waker may be anybody's.
        let waker = waker.clone();
        let look = room.meeting.change();
        if look == Look::NotYet {
            // SAFETY: rule 3: we are changing it.
            let before = unsafe { (*room.waker.get()).replace(waker) };
            room.meeting.changed();
            drop(before);
            self.waker = identity;
        }
        look
    }

    /// Takes the outcome and gives the memory back.
    fn take_outcome(self, frame: &Frame<'_>) -> OutcomeOf<S> {
        let this = ManuallyDrop::new(self);
        // SAFETY: rules 2 and 4: the meeting has said that all is ours, and as `self` is given up, it is taken once.
        unsafe {
            let (guest, outcome) = Room::clear(this.room);
            let host = frame.host();
            if guest.host.is_at(NonNull::from(host).cast()) {
                host.dismiss(guest);
            } else {
                // The future was sent to another task than the one it was started in.
                HostRef::leave(guest);
            }
            outcome
        }
    }
}

impl<S: Sender> Running<S> {
    fn room(&self) -> &Room<S> {
        // SAFETY: rule 4: we have not given it up.
        unsafe { self.room.as_ref() }
    }
}

impl<S: Sender> Drop for Running<S> {
    fn drop(&mut self) {
        // Rule 5: before it is abandoned. What a callback throws has been reported by the panic hook.
        let _ = Panic::catch(|| self.room().stop.request_stop(StopReason::Abandoned));
        match self.room().meeting.abandon() {
            Abandon::Leave => {}
            // SAFETY: rule 4.
            Abandon::Free => unsafe { Room::free(self.room) },
        }
    }
}

impl<S: Sender> Room<S> {
    /// Destroys what is in the room and says what came of it, and where it is.
    ///
    /// # Safety
    /// Rule 4: called once, by whoever the room belongs to.
    unsafe fn clear(room: NonNull<Self>) -> (Guest, OutcomeOf<S>) {
        // SAFETY: the caller's; the operation has completed.
        unsafe {
            let this = room.as_ref();
            let outcome = (*this.outcome.get()).take().expect("the operation has completed");
            let outcome = this.operation.clear_after(outcome);
            let guest = this.guest;
            if let Some(waker) = (*this.waker.get()).take() {
                // A foreign waker may panic when it is dropped. The panic hook has told of it; the host must be told that we leave.
                let _ = Panic::catch(|| drop(waker));
            }
            room.drop_in_place();
            (guest, outcome)
        }
    }

    /// The same where nobody wants the outcome; and leaves the host.
    ///
    /// # Safety
    /// As for `clear`.
    unsafe fn free(room: NonNull<Self>) {
        // SAFETY: the caller's. What the destructors of values throw has been reported by the panic hook.
        unsafe {
            let (guest, outcome) = Self::clear(room);
            let _ = Panic::catch(|| drop(outcome));
            HostRef::leave(guest);
        }
    }
}

impl<S: Sender> Receiver<S::Value, S::Error> for GuestReceiver<S> {
    #[inline]
    fn complete(self, outcome: OutcomeOf<S>) {
        // SAFETY: the room is there until we say that we have completed; rule 2. After that we touch it only as the meeting
        // tells us: rules 3 and 4.
        unsafe {
            let room = self.room.as_ref();
            *room.outcome.get() = Some(outcome);
            match room.meeting.complete() {
                Complete::Leave => {}
                Complete::Wake => {
                    let waker = (*room.waker.get()).take();
                    room.meeting.left();
                    if let Some(waker) = waker {
                        // A foreign waker may panic. The panic hook has told of it then; whoever completes us may have
                        // others to complete, and does not expect to unwind.
                        drop(Panic::catch(|| waker.wake()));
                    }
                }
                Complete::Free => Room::free(self.room),
            }
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: the room is there until we are completed.
        unsafe { &self.room.as_ref().env }
    }
}
