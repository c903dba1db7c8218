//! A task with its type, in one allocation: header, ending, and body. Here is the one function that knows the
//! type, [`Cell::call`], and every way through it.

#![allow(unsafe_code)]

use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::Context;

use convoke_core::raw::{Call, Frame, Header, Polled, WorkKind, budget};
use convoke_core::{InlineExecutor, Outcome, Panic};

use convoke_core::raw::watching::polls;

use super::ending::{After, Ending};
use super::header::{Stage, TaskHeader};
use super::inside::{Inside, not_on_owner_thread, report_leak};
use super::memory::Vacated;
use super::queued::Queued;
use super::reference::{Alive, Known, Leaving, Left, TaskRef};
use super::rerun::run_again;
use super::spawn_site::TaskKind;
use super::state::{Access, AfterPause, Leave};
use crate::hooks::TaskEnd;

/// The outcome of a task that is leaving, and the right to take it. It stays where it is if this is dropped:
/// for a handle.
pub(crate) struct OutcomeSlot<'a, T> {
    outcome: *mut Outcome<T>,
    _task: PhantomData<&'a mut Outcome<T>>,
}

impl<T> OutcomeSlot<'_, T> {
    /// Takes the outcome.
    #[inline]
    pub(crate) fn take(self) -> Outcome<T> {
        // SAFETY: `Ended::leave` creates one slot, with the outcome in it; it is consumed here.
        unsafe { self.outcome.read() }
    }
}

/// A task with its type.
#[repr(C)]
pub(crate) struct Cell<F: Future, M> {
    // First, so that a pointer to the header is a pointer to the cell.
    header: TaskHeader,
    ending: M,
    body: Body<F>,
}

impl<F: Future, M> Cell<F, M> {
    /// The offset of the ending.
    pub(super) const ENDING_AT: usize = core::mem::offset_of!(Self, ending);

    /// Creates a task that holds its future.
    #[inline]
    pub(super) fn new(header: TaskHeader, ending: M, future: F) -> Self {
        Self { header, ending, body: Body { future: ManuallyDrop::new(future) } }
    }

    /// Returns the address of the ending.
    #[inline]
    pub(super) fn ending_at(cell: NonNull<Self>) -> *mut M {
        cell.as_ptr().wrapping_byte_add(Self::ENDING_AT).cast()
    }

    /// Returns the address of the body as the future.
    #[inline]
    pub(super) fn future_at(cell: NonNull<Self>) -> *mut F {
        cell.as_ptr().wrapping_byte_add(core::mem::offset_of!(Self, body)).cast()
    }

    /// Returns the address of the body as the outcome: both fields of the union lie at its start (`repr(C)`).
    #[inline]
    pub(super) fn outcome_at(cell: NonNull<Self>) -> *mut Outcome<F::Output> {
        Self::future_at(cell).cast()
    }
}

/// The future, then its outcome. `TaskHeader::stage` says which.
#[repr(C)]
union Body<F: Future> {
    future: ManuallyDrop<F>,
    outcome: ManuallyDrop<Outcome<F::Output>>,
}

impl<F: Future, M: Ending<F::Output>> Cell<F, M> {
    /// The work kind by which executors run the task.
    pub(super) const WORK: WorkKind = WorkKind::new(Self::call);

    /// The kind of such a task after it has left.
    const LEFT: &'static TaskKind = &TaskKind::left(Self::WORK);

    /// Runs the task, refuses to, lets it leave, or frees it: the one function that knows the type.
    ///
    /// # Safety
    /// `header` is that of a `Self`. The caller holds its runnable, or dropped its last reference.
    pub(super) unsafe fn call(header: NonNull<Header>, call: Call) {
        // SAFETY: facts 2 and 4 of `Alive`: this thread holds the runnable; or the task has ended, and this
        // thread dropped the last reference or received the remote wake that the task waited for.
        let task = unsafe { Alive::new(header.cast()) };
        // Two functions, each with a stack frame of its own: the second needs little stack.
        if task.header().state.is_done() {
            Ended::<F, M>(task, PhantomData).settle();
        } else {
            Held::<F, M>(task, PhantomData).run(call);
        }
    }
}

/// A runnable of a task that has not ended, and so the right to enter it. It is consumed by entering.
struct Held<'a, F: Future, M>(Alive<'a>, PhantomData<NonNull<Cell<F, M>>>);

impl<F: Future, M: Ending<F::Output>> Held<'_, F, M> {
    /// Runs the task, or refuses to.
    #[inline(never)]
    fn run(self, call: Call) {
        let task = self.0;
        let this = task.header();
        let access = this.access();
        if access == Access::Remote {
            return match call {
                Call::Run => not_on_owner_thread(),
                Call::Stop => task.refuse_remotely(),
            };
        }
        let asked = this.state.begin(access);
        // `begin` has set `RUNNING`: this thread is inside.
        if let Some(queued) = Entered::<F, M>(task, PhantomData).go_on(call, asked) {
            run_again(queued);
        }
    }
}

/// The right of the thread that is inside a task: rule 2 of the header holds while this exists. It is
/// consumed by leaving the inside.
struct Entered<'a, F: Future, M>(Alive<'a>, PhantomData<NonNull<Cell<F, M>>>);

impl<'a, F: Future, M: Ending<F::Output>> Entered<'a, F, M> {
    #[inline]
    fn cell(&self) -> NonNull<Cell<F, M>> {
        self.0.address().cast()
    }

    #[inline]
    fn inside(&self) -> &Inside {
        // SAFETY: this thread is inside while `self` exists.
        unsafe { Inside::new(self.0.address()) }
    }

    /// Returns the right to the future, if there still is one.
    #[inline]
    fn future(&mut self) -> Option<WithFuture<'_, 'a, F, M>> {
        (self.inside().header().stage.get() == Stage::Future).then_some(WithFuture(self))
    }

    /// Calls [`Ending::ended`], for a task whose outcome is in the slot. Returns how it has ended.
    #[inline]
    fn call_ended(&mut self) -> TaskEnd {
        // SAFETY: rule 2 of the header: this thread is inside, so the ending is not changed and the outcome is
        // this thread's alone. `go_on` calls this after the future was replaced by the outcome.
        let (ending, outcome) =
            unsafe { (&*Cell::ending_at(self.cell()), &mut *Cell::outcome_at(self.cell())) };
        ending.ended(self.inside(), outcome);
        TaskEnd::of(outcome)
    }

    /// Polls, or ends the task. Returns the runnable if the task was woken meanwhile and its executor has no
    /// queue: the caller runs it again.
    #[inline]
    fn go_on(mut self, call: Call, asked: bool) -> Option<Queued> {
        let task = self.0.address().cast();
        if let Some(future) = self.future() {
            let calm = polls(task);
            // One branch for both: each is rare.
            if (!calm | (call == Call::Stop)) && future.0.inside().must_not_be_polled(call) {
                future.end_badly(Outcome::Stopped);
            } else {
                match future.poll(asked, calm) {
                    AfterPoll::Ended => {}
                    AfterPoll::Waits => return self.pause(false),
                    AfterPoll::WokenByItself => return self.pause(true),
                }
            }
        }
        if let Some(cold) = self.inside().cold() {
            // An operation that is released after this check wakes the task, and `pause` sees that.
            if !cold.is_empty() {
                return self.pause(false);
            }
            let end = self.call_ended();
            self.inside().observe_ended(end);
            self.inside().clear_cold();
        } else {
            self.call_ended();
        }
        // Asked for again: the task may have moved.
        let header = self.inside().header();
        let leave = header.state.finish_and_leave(header.access_inside());
        Ended::<F, M>(self.0, PhantomData).leave(leave);
        None
    }

    /// Leaves the inside of a task that waits, or has woken itself. Returns a runnable as `go_on` does.
    #[inline]
    fn pause(self, woken_by_itself: bool) -> Option<Queued> {
        // Asked for again: the task may just have moved. A task that has moved is shared.
        let access = self.inside().header().access_inside();
        if access == Access::Shared {
            self.inside().forget_past();
        }
        let queued = self.queued_after(access, woken_by_itself)?;
        if access == Access::Shared && queued.env().executor().is(&InlineExecutor) {
            // The inline executor would run the task on top of this run, deeper and deeper.
            return Some(queued);
        }
        queued.post();
        None
    }

    /// Leaves the inside. Returns the runnable if the task was woken meanwhile.
    #[inline]
    fn queued_after(self, access: Access, woken_by_itself: bool) -> Option<Queued> {
        let state = &self.inside().header().state;
        if woken_by_itself {
            state.pause_and_queue(access);
        } else if state.pause(access) == AfterPause::Idle {
            return None;
        }
        // SAFETY: rule 1 of `Queued`: either transition has made this thread the holder of the runnable.
        Some(unsafe { Queued::new(self.0.address()) })
    }
}

/// The state of a task after its future was polled.
enum AfterPoll {
    Ended,
    Waits,
    WokenByItself,
}

/// The right of the thread inside to the future, which is still there. It is consumed by the poll that may
/// end it.
struct WithFuture<'e, 'a, F: Future, M>(&'e Entered<'a, F, M>);

impl<F: Future, M: Ending<F::Output>> WithFuture<'_, '_, F, M> {
    /// Polls the future. On a thread that is not calm the task may be watched. If it has ended, its outcome is in
    /// the slot then, and the future is gone.
    // Always: there is one caller, and a call would cost every poll twenty instructions.
    #[inline(always)]
    fn poll(self, asked: bool, calm: bool) -> AfterPoll {
        let inside = self.0.inside();
        // SAFETY: the future is there, and this thread is inside. It does not move until it is dropped in
        // place.
        let future = unsafe { Pin::new_unchecked(&mut *Cell::future_at(self.0.cell())) };
        let waits = if calm {
            inside.waits()
        } else {
            inside.observe_begin(asked);
            inside.waits_for_watchers()
        };
        let polled = self.0.0.with_waker(|waker| {
            let mut cx = Context::from_waker(waker);
            Panic::catch(|| {
                let _budget = budget::of_poll();
                if asked {
                    inside.pass_on_stop();
                }
                let frame = Frame::outermost(inside, waker, waits, asked, &inside.header().stopped);
                (frame.poll(future, &mut cx), frame.is_task_woken())
            })
        });
        match polled {
            Ok((Polled::Pending, woken)) => {
                if !calm {
                    inside.observe_end();
                }
                return if woken { AfterPoll::WokenByItself } else { AfterPoll::Waits };
            }
            Ok((Polled::Ready(value), _)) => match self.drop_future(asked) {
                Ok(()) => self.finish(Outcome::Value(value)),
                Err(panic) => self.finish(Outcome::Value(value).or_panic(panic)),
            },
            Ok((Polled::Stopped, _)) => self.end_badly(Outcome::Stopped),
            Err(panic) => self.end_badly(Outcome::Panicked(panic)),
        }
        if !calm {
            inside.observe_end();
        }
        AfterPoll::Ended
    }

    /// Drops the future, unless this is not its thread, and puts this outcome into the slot.
    #[cold]
    #[inline(never)]
    fn end_badly(self, outcome: Outcome<F::Output>) {
        let inside = self.0.inside();
        if matches!(outcome, Outcome::Stopped) {
            inside.ends_stopped();
        }
        let outcome = if inside.must_not_be_touched_here() {
            report_leak(inside.location());
            outcome
        } else {
            match self.drop_future(inside.header().state.stop_asked()) {
                Ok(()) => outcome,
                Err(panic) => outcome.or_panic(panic),
            }
        };
        self.finish(outcome);
    }

    /// Drops the future in place, on its thread. A panic of its destructor is returned. The caller calls
    /// `finish`.
    #[inline]
    fn drop_future(&self, asked: bool) -> Result<(), Panic> {
        if !core::mem::needs_drop::<F>() {
            return Ok(());
        }
        let (inside, future) = (self.0.inside(), Cell::future_at(self.0.cell()));
        self.0.0.with_waker(|waker| {
            Panic::catch(|| {
                let frame = Frame::outermost(inside, waker, inside.waits(), asked, &inside.header().stopped);
                // SAFETY: the future is there, and is not used again: `finish` replaces it.
                frame.within(|| unsafe { future.drop_in_place() });
            })
        })
    }

    /// Puts the outcome where the future was, which is gone.
    #[inline]
    fn finish(self, outcome: Outcome<F::Output>) {
        // SAFETY: rule 2 of the header: this thread is inside, and the future is gone.
        unsafe { Cell::outcome_at(self.0.cell()).write(outcome) };
        self.0.inside().header().stage.set(Stage::Outcome);
    }
}

/// The right of the one thread that has a task to itself which has ended: no thread enters it any more. Until
/// the task has left, its own reference keeps the memory.
struct Ended<'a, F: Future, M>(Alive<'a>, PhantomData<NonNull<Cell<F, M>>>);

impl<'a, F: Future, M: Ending<F::Output>> Ended<'a, F, M> {
    #[inline]
    fn cell(&self) -> NonNull<Cell<F, M>> {
        self.0.address().cast()
    }

    /// Returns the header. The task is alive until it is freed, or its own reference given up; both consume
    /// `self`.
    #[inline]
    fn header(&self) -> &'a TaskHeader {
        self.0.header()
    }

    /// Frees the task, if its last reference was dropped; or lets it leave, if the remote wake was received
    /// that it waited for. The stage says which.
    #[inline(never)]
    fn settle(self) {
        match self.header().stage.get() {
            Stage::Future | Stage::Outcome | Stage::Delivered => self.free(),
            leaving => {
                // The thread that frees the task later comes here, too, and must not find it leaving.
                self.header().stage.set(Stage::Outcome);
                if leaving == Stage::Leaving {
                    self.leave_late();
                } else {
                    self.leave_after_all();
                }
            }
        }
    }

    /// Tells the parent. The state says once that the task leaves, and then this is called.
    #[inline(always)]
    fn deliver(&self) -> (Left, M::After) {
        // SAFETY: this thread has the task to itself, the state has said once that it leaves, and its outcome
        // is in the slot: so there is one `Leaving` and one `OutcomeSlot`. Both end before `self` does.
        let (ending, leaving) = unsafe { (&*Cell::ending_at(self.cell()), Leaving::new(self.0.address())) };
        ending.deliver(leaving, OutcomeSlot { outcome: Cell::outcome_at(self.cell()), _task: PhantomData })
    }

    /// Tells the parent, frees the memory if nothing else refers to it, and then tells the waiter.
    #[inline(always)]
    fn leave(self, leave: Leave) {
        if leave == Leave::Later {
            return;
        }
        let counted = leave == Leave::Counted;
        let (Left(known), after) = self.deliver();
        // Rule 6 of the header: unless the task is freed now, its kind is set before its reference is given up.
        if counted {
            self.set_left();
            self.drop_own_reference();
        } else if known == Known::ToOthers {
            // The parent let others refer to it between the check of the references and `deliver`.
            self.leave_after_all();
        } else if M::HANDLE {
            // A task that has a handle on the owner thread, or had one.
            self.set_left();
            if self.header().state.left_to_handle() {
                self.free();
            }
        } else {
            self.free();
        }
        after.tell();
    }

    /// Lets a task leave when the remote wake that it waited for was received.
    #[cold]
    fn leave_late(self) {
        let this = self.header();
        let leave = this.state.leave(this.access());
        self.leave(leave);
    }

    /// Lets a task leave whose parent was told already.
    #[cold]
    fn leave_after_all(self) {
        self.header().stage.set(Stage::Delivered);
        // Set before the state says what comes: the receiver of a remote wake that the task may have to wait
        // for calls it through its kind.
        self.set_left();
        if self.header().state.leave_after_all(self.header().access()) != Leave::Later {
            self.drop_own_reference();
        }
    }

    /// Replaces the kind, after the parent was told: rule 6 of the header.
    #[inline]
    fn set_left(&self) {
        // SAFETY: rule 6: the parent was told, and the task's own reference is still there. Setting the kind
        // twice, as a task does that leaves after all, does no harm.
        unsafe { self.header().set_left(Cell::<F, M>::LEFT) };
    }

    /// Gives up the reference that the task has to itself.
    #[inline]
    fn drop_own_reference(self) {
        // SAFETY: the state has said that the task leaves as one that is counted, so its own reference is
        // still there, and `self`, which is consumed, is its owner.
        drop(unsafe { TaskRef::from_counted(self.0.address()) });
    }

    /// Frees the task, to which nothing refers any more.
    #[inline]
    fn free(self) {
        // SAFETY: this thread has the task to itself, and its body is gone: the future was dropped, and the
        // outcome taken by the parent or by the handle.
        unsafe { Vacated::<F, M>::new(self.cell()) }.destroy();
    }
}
