//! The poll frame: what a future knows of the task that polls it, without being handed anything.
//!
//! # Protocol
//! - While a task, scope or other owner polls a body, a thread-local points to the nearest [`Frame`], the
//!   *current frame*. [`Frame::within`] sets it and restores the one before, like a stack. The pointer owns
//!   nothing. Only the polling thread reads it, and only during the poll.
//! - A frame names its [`FrameOwner`] and carries three flags. *Stop requested* is an input: set by the owner
//!   for this poll, read by the futures inside. *Stopped* and *held* are outputs: set by the futures inside,
//!   read by the owner when the poll returns.
//! - **Stopped.** A future that honours a stop calls [`Frame::set_stopped`] and returns `Pending`. The owner
//!   sees the flag, drops the body in place, and ends as stopped. So a stop unwinds any `async fn` in
//!   between, on stable Rust and without their help.
//! - **Foreign.** A body that waits after a stop request, and in which nothing is stopped or held, waits for a
//!   future of another crate. By default it counts as stopped: [`ForeignFutures`].
//! - **Held.** A future that must not be dropped yet, because it cleans up or waits for work that it has
//!   stopped, calls [`Frame::hold`] at every poll that returns `Pending`. The owner then keeps the body and
//!   waits. So a sibling in a foreign `join!` that stops faster does not cut a clean-up short.
//! - **Sheltered.** Behind a shield a stop of the task does not concern the work. Its frame is marked, and
//!   scopes in it hear of a stop from the frame alone, and not from the thread that asks the task to stop.
//! - The request reaches the flag, and goes from there to awaited operations, over the stop bridge: see
//!   [`stop`](crate::stop).
//!
//! # Map
//! | file | contents |
//! | --- | --- |
//! | `mod.rs` | [`Frame`], and its owner |
//! | `current.rs` | the current frame of a thread |
//! | `budget.rs` | how many awaits of one poll may be ready at once |
//! | `environment.rs` | the environment of what is started in a frame, with the changes of an overlay |
//! | `flags.rs` | the flags of a frame; how a task wakes itself |
//! | `foreign.rs` | the policy for futures of other crates that wait when a stop is requested |
//! | `kept.rs` | a frame that is stored from poll to poll, for generators |
//! | `memory.rs` | the frame allocator of the running task; stop sources and locals in its memory |
//! | `owner.rs` | [`OperationOwner`]: the task as the owner of awaited operations |
//! | `pause.rs` | [`Pause`]: stop and wait location of a future that waits |
//! | `several.rs` | one frame for several bodies |
//! | `stop_again.rs` | the hint for code that goes on after a stop and is stopped again |
//! | `until_stopped.rs` | waits until a stop is requested, without ending by it |
//! | `wake_on_stop.rs` | a waker that is called when a stop is requested |
//! | `watch.rs` | [`StopWatch`]: wakes a foreign waker when a stop is requested |
//! | `waker_mark.rs` | [`WakerMark`]: the identity of a waker |

#![allow(unsafe_code)]

pub(crate) mod budget;
mod current;
mod environment;
mod flags;
mod foreign;
mod kept;
mod memory;
mod owner;
mod pause;
mod several;
mod stop_again;
mod until_stopped;
mod wake_on_stop;
mod waker_mark;
mod watch;

use flags::{ASKED, CAUGHT, HELD, KEPT, OUTERMOST, SHELTERED, asked_flag};
pub use foreign::{FOREIGN_FUTURES, ForeignFutures};
pub use kept::{KeepsFrame, KeptFrame};
pub use memory::current_allocator;
pub use owner::{AdoptedMemory, OperationOwner, OwnerKind, OwnerRef, UnderWay};
pub use pause::Pause;
pub use until_stopped::UntilStopped;

pub use waker_mark::WakerMark;
pub use watch::StopWatch;

use core::cell::Cell;
use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::env::Overlay;
use crate::executor::WaitLocation;
use crate::stack::{call_with_room, with_room};
use crate::stop::ReasonCode;
use crate::{Env, StopReason};

/// The owner of a frame: a task, a scope, a `using`. It answers for the work that runs inside.
pub trait FrameOwner {
    /// Returns the environment of the work inside. A stop of this owner is requested at its stop token too.
    fn env(&self) -> &Env;

    /// Returns the reason why the work inside is to stop, or `None` if no stop was requested.
    fn stop_reason(&self) -> Option<StopReason>;

    /// Returns the time at which a stop will be requested at the latest.
    fn deadline(&self) -> Option<Instant>;

    /// Returns the frame around this one, if it belongs to the same task.
    fn around(&self) -> Option<&Frame<'_>> {
        None
    }
}

/// One level of the nesting from a task down to the future that waits.
///
/// Holds what every wait needs, so that no call through a pointer is needed for it.
pub struct Frame<'a> {
    owner: &'a dyn FrameOwner,
    task: TaskPart<'a>,
    /// `ASKED` and the other flags of `flags.rs`, in one byte: written at once, and tested at once.
    flags: Cell<u8>,
    /// The reason of the work that ended as stopped inside, if that is known and not the reason of this frame.
    cause: Cell<Option<ReasonCode>>,
    /// Belongs to the owner, which stores it from poll to poll.
    stopped: &'a Cell<bool>,
}

/// The part that all frames of one task share.
#[derive(Clone, Copy)]
struct TaskPart<'a> {
    owner: &'a dyn OperationOwner,
    /// The task's own waker, or that of a child of a combinator that polls all its children when a stop is
    /// requested.
    waker: &'a Waker,
    waits: &'a WaitLocation,
    /// The changes that hold for the part of the task that the frame belongs to, if there are any.
    overlay: Option<&'a Overlay>,
}

/// The result of polling a body inside a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Polled<T> {
    /// The body has returned, even if a stop was requested meanwhile.
    Ready(T),
    /// The body waits.
    Pending,
    /// A future inside has ended as stopped. Drop the body now, and do not poll it again.
    Stopped,
}

/// The next step of a poll whose body waits.
enum Next {
    /// Poll it once more, in the same poll.
    Again,
    Wait,
    Stop,
}

/// The *held* flag of a frame before a future in it was polled: see [`Frame::held_before`]. All flags are stored, and the
/// other ones not used.
#[derive(Clone, Copy, Debug)]
pub struct HeldBefore(u8);

impl<'a> Frame<'a> {
    /// Creates the outermost frame of a task, for one poll. `waker` is the task's own, `asked` says whether a
    /// stop was requested, and `stopped` is a flag that the task stores.
    #[inline]
    pub fn outermost<T: FrameOwner + OperationOwner>(
        task: &'a T,
        waker: &'a Waker,
        waits: &'a WaitLocation,
        asked: bool,
        stopped: &'a Cell<bool>,
    ) -> Self {
        let part = TaskPart { owner: task, waker, waits, overlay: None };
        Self::with(task, part, asked, stopped, OUTERMOST)
    }

    /// Creates a frame inside this one, for another owner. The owner stores the flag `stopped`. An owner that
    /// does not pass a stop of the task on says so with [`sheltered_if`](Frame::sheltered_if).
    #[inline]
    pub fn inside<'b>(
        &'b self,
        owner: &'b dyn FrameOwner,
        asked: bool,
        stopped: &'b Cell<bool>,
    ) -> Frame<'b> {
        Frame::with(owner, self.task, asked, stopped, self.flags.get() & SHELTERED)
    }

    /// Marks the frame as one that a stop of the task does not reach, if `shielded`.
    #[inline]
    #[must_use]
    pub fn sheltered_if(self, shielded: bool) -> Self {
        if shielded {
            self.set(SHELTERED);
        }
        self
    }

    /// Returns true if a stop of the task does not, or not always, reach the work in this frame.
    #[inline]
    pub fn is_sheltered(&self) -> bool {
        self.has(SHELTERED)
    }

    /// Creates a frame for one of several bodies that the owner polls with wakers of their own. When a stop
    /// is requested the owner polls all of them, woken or not; so they need not register their wakers for
    /// that.
    pub fn inside_among<'b>(
        &'b self,
        owner: &'b dyn FrameOwner,
        waker: &'b Waker,
        asked: bool,
        stopped: &'b Cell<bool>,
    ) -> Frame<'b> {
        Frame::with(owner, TaskPart { waker, ..self.task }, asked, stopped, self.flags.get() & SHELTERED)
    }

    #[inline]
    fn with(
        owner: &'a dyn FrameOwner,
        task: TaskPart<'a>,
        asked: bool,
        stopped: &'a Cell<bool>,
        flags: u8,
    ) -> Self {
        let flags = Cell::new(asked_flag(asked) | flags);
        Self { owner, task, flags, cause: Cell::new(None), stopped }
    }

    /// Creates a frame inside this one with the same owner, which catches a stop.
    #[inline]
    pub fn same<'b>(&'b self, stopped: &'b Cell<bool>) -> Frame<'b> {
        let flags = Cell::new(self.flags.get() & (ASKED | SHELTERED | KEPT));
        Frame { owner: self.owner, task: self.task, flags, cause: Cell::new(None), stopped }
    }

    /// Polls `body` inside this frame.
    #[inline]
    pub fn poll<F: Future + ?Sized>(&self, mut body: Pin<&mut F>, cx: &mut Context<'_>) -> Polled<F::Output> {
        let mut again = false;
        // The poll of the body is called in one place, because it is inlined there.
        loop {
            let mut polled = Poll::Pending;
            call_with_room(&mut || {
                let _restore = self.enter();
                polled = body.as_mut().poll(cx);
            });
            match polled {
                Poll::Ready(value) => return Polled::Ready(value),
                Poll::Pending if !(self.has(HELD | ASKED) || self.stopped.get()) => {
                    return Polled::Pending;
                }
                Poll::Pending => match self.after_pending(again) {
                    Next::Again => again = true,
                    Next::Wait => return Polled::Pending,
                    Next::Stop => return Polled::Stopped,
                },
            }
        }
    }

    /// Says what to do with a body that waits, in which something is held or stopped, or was asked to stop.
    #[cold]
    #[inline(never)]
    fn after_pending(&self, again: bool) -> Next {
        match (self.has(HELD), self.stopped.get()) {
            // One future inside is stopped, another one is held. If the held one was dropped in the same poll,
            // by a foreign `select!`, nothing would ever poll the task again; a second poll shows whether it
            // still exists.
            (true, true) if !again => {
                self.clear(HELD);
                Next::Again
            }
            (true, _) => {
                // The frames around must not drop it either.
                Self::hold_current();
                Next::Wait
            }
            (false, false) if !(again || self.has(ASKED) && self.gives_way()) => Next::Wait,
            (false, _) => {
                self.pass_cause_on();
                Next::Stop
            }
        }
    }

    /// Passes the cause of a stop on to the frame around this one, whose owner may stop with it.
    fn pass_cause_on(&self) {
        // The frame around the outermost one belongs to another task, or there is none.
        if self.owner.around().is_some() {
            Frame::current(|frame| {
                if let Some(around) = frame {
                    around.cause.set(self.cause.get());
                }
            });
        }
    }

    /// Returns true if a body that waits after a stop request counts as stopped. Nothing inside has stopped or
    /// holds, though all futures of Convoke that hear of the request do one of the two: so the body waits for
    /// a future of another crate.
    fn gives_way(&self) -> bool {
        let owner = self.task.owner;
        // A clean-up behind a foreign combinator is not polled each time, and so cannot hold.
        !owner.has_work_under_way()
            && self.local(&FOREIGN_FUTURES).copied().unwrap_or_default() == ForeignFutures::GiveWay
    }

    /// Returns true if nothing in the body that was polled in this frame keeps it from being dropped.
    pub fn may_be_dropped(&self) -> bool {
        !self.has(HELD) && !self.task.owner.has_work_under_way()
    }

    /// Returns the number of owners around this frame, inside the same task.
    pub fn depth(&self) -> usize {
        core::iter::successors(self.owner.around(), |frame| frame.owner.around()).count()
    }

    /// Returns true if a stop was requested of the owner that has `depth` owners around it, or of one around
    /// it; or of this frame, if it is not as deep.
    pub fn is_asked_at(&self, depth: usize) -> bool {
        let mut frame = self;
        for _ in depth..self.depth() {
            match frame.owner.around() {
                Some(around) => frame = around,
                None => break,
            }
        }
        frame.has(ASKED)
    }

    /// Returns the environment of the work inside, with a stop token of the owner.
    pub fn env(&self) -> &'a Env {
        with_room(|| self.owner.env())
    }

    /// Returns the reason of a stop request that was made by now, or `None`.
    pub fn stop_reason(&self) -> Option<StopReason> {
        with_room(|| self.owner.stop_reason())
    }

    /// Returns false if no stop was requested when this poll began, and none of the task since.
    #[inline]
    pub fn may_be_asked_to_stop(&self) -> bool {
        self.has(ASKED | SHELTERED) || self.task.owner.may_be_asked_to_stop()
    }

    /// Returns the time at which a stop will be requested at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        with_room(|| self.owner.deadline())
    }

    /// Returns the task of this frame, which owns the operations that are awaited in it.
    #[inline]
    pub fn operation_owner(&self) -> &'a dyn OperationOwner {
        self.task.owner
    }

    /// Returns true if this waker leads to a poll when a stop is requested: it is the task's own, or that of
    /// a child of a combinator that polls all its children then. Other wakers need a [`StopWatch`].
    #[inline]
    pub fn is_own_waker(&self, waker: &Waker) -> bool {
        ptr::eq(self.task.waker, waker) || self.task.waker.will_wake(waker)
    }

    /// Records where the task waits, for diagnosis.
    #[inline]
    pub fn waits_at(&self, location: &'static Location<'static>) {
        self.task.waits.set(location);
    }

    /// Ends the work in this frame as stopped. The caller, a future, returns `Pending` now.
    #[inline]
    pub fn set_stopped(&self) {
        if self.has(CAUGHT) {
            stop_again::report(self.task.waits.get());
        }
        self.stopped.set(true);
    }

    /// Ends the work in this frame as stopped, because other work did that it waited for: for that reason, if
    /// it is known. The caller, a future, returns `Pending` now.
    pub fn stop_with(&self, cause: Option<StopReason>) {
        self.cause.set(cause.map(ReasonCode::of));
        self.set_stopped();
    }

    /// Takes the reason of work that ended as stopped in this frame, if it is known and not the frame's own.
    pub fn take_cause(&self) -> Option<StopReason> {
        self.cause.take().map(ReasonCode::reason)
    }

    /// Ends the work in this frame as stopped, because it says so itself. The caller, a future, returns
    /// `Pending` now.
    pub fn stop_itself(&self) {
        self.clear(CAUGHT);
        self.cause.set(None);
        self.set_stopped();
    }

    /// Records that a stop inside was turned into a value, and the work in this frame goes on. If the request
    /// still holds, the next wait is stopped again, which is reported.
    pub fn stop_was_caught(&self) {
        if self.has(ASKED) {
            self.set(CAUGHT);
        } else {
            self.clear(CAUGHT);
        }
    }

    /// Marks the caller, a future that returns `Pending` now, as one that must not be dropped yet.
    #[inline]
    pub fn hold(&self) {
        // After a caught stop this is a shield or a clean-up, which goes on.
        self.flags.set(self.flags.get() & !CAUGHT | HELD);
    }

    /// Returns true if a future inside must not be dropped yet, as of the last poll.
    pub fn is_held(&self) -> bool {
        self.has(HELD)
    }

    /// Resets the *held* flag of the current frame: the futures that set it since `since` have ended in the
    /// same poll.
    #[inline]
    pub fn forget_holds(since: HeldBefore) {
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.restore_held(since);
            }
        });
    }

    /// Returns the *held* flag of the current frame, for [`forget_holds`](Frame::forget_holds).
    #[inline]
    pub fn held_before() -> HeldBefore {
        Frame::current(|frame| frame.map_or(HeldBefore(0), Frame::held))
    }

    /// Calls [`hold`](Frame::hold) on the current frame, if there is one.
    #[inline]
    pub fn hold_current() {
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.hold();
            }
        });
    }

    /// Returns true if a stop had been requested when this poll began.
    #[inline]
    pub fn is_asked_to_stop(&self) -> bool {
        self.has(ASKED)
    }

    /// Ends as stopped if a stop was requested. Returns true if so: the caller, a future, returns `Pending`
    /// now.
    #[inline]
    pub fn honour_stop(&self) -> bool {
        let asked = self.has(ASKED);
        if asked {
            self.cause.set(None);
            self.set_stopped();
        }
        asked
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("stopped", &self.stopped.get())
            .field("stop_requested", &self.has(ASKED))
            .finish_non_exhaustive()
    }
}

/// Panics: the future `what`, which needs a task, was polled outside of all tasks.
#[cold]
#[inline(never)]
#[track_caller]
pub fn outside_a_task(what: &str) -> ! {
    panic!(
        "{what} was polled outside a Convoke task, and needs one to wait in. Run the future with \
         `#[convoke::main]`, `convoke::block_on(future)`, `launch(&executor)` or in a scope; inside a tokio task, \
         with `convoke_tokio::run(future)`"
    )
}
