//! A task with its type, in one allocation: header, ending, and body. Here is the one function that knows the
//! type, [`Cell::call`], and every way through it.
//!
//! Each generic function here is compiled for each type of task. So the rights to a task come in two layers: [`Within`]
//! and [`Done`] do all that needs no type, and [`Entered`] and [`Ended`] add the type. An optimised program inlines the
//! first layer into the second, because a call, with the registers that it saves, costs up to twenty instructions. The
//! attributes say so: the compiler does not choose to inline what many types share.

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
use super::waker::BorrowedWaker;
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
    /// The offset of the body: of the future, and of the outcome. Both fields of the union lie at its start (`repr(C)`).
    pub(super) const BODY_AT: usize = core::mem::offset_of!(Self, body);

    /// Creates a task that holds its future.
    #[inline]
    pub(super) fn new(header: TaskHeader, ending: M, future: F) -> Self {
        Self { header, ending, body: Body { future: ManuallyDrop::new(future) } }
    }
}

/// The future, then its outcome. `TaskHeader::stage` says which.
#[repr(C)]
union Body<F: Future> {
    future: ManuallyDrop<F>,
    outcome: ManuallyDrop<Outcome<F::Output>>,
}

/// Returns the address at this offset in a task.
#[inline]
pub(super) fn part_of(task: NonNull<TaskHeader>, offset: usize) -> *mut u8 {
    task.as_ptr().cast::<u8>().wrapping_add(offset)
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
            Ended::<F, M>(Done(task), PhantomData).settle();
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
        if let Some((within, asked)) = Within::enter(self.0, call)
            && let Some(queued) = Entered::<F, M>(within, PhantomData).go_on(call, asked)
        {
            run_again(queued);
        }
    }
}

/// The right of the thread that is inside a task: rule 2 of the header holds while this exists. It is
/// consumed by leaving the inside.
struct Within<'a>(Alive<'a>);

impl<'a> Within<'a> {
    /// Enters a task whose runnable this thread holds. Returns true as well if the task was asked to stop. Returns
    /// `None` if this thread must not enter, and has refused the runnable.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enter(task: Alive<'a>, call: Call) -> Option<(Self, bool)> {
        let this = task.header();
        let access = this.access();
        if access == Access::Remote {
            match call {
                Call::Run => not_on_owner_thread(),
                Call::Stop => task.refuse_remotely(),
            }
            return None;
        }
        // `begin` sets `RUNNING`: this thread is inside.
        let asked = this.state.begin(access);
        Some((Self(task), asked))
    }

    #[inline]
    fn inside(&self) -> &Inside {
        // SAFETY: this thread is inside while `self` exists.
        unsafe { Inside::new(self.0.address()) }
    }

    /// Returns the address at this offset in the task.
    #[inline]
    fn part(&self, offset: usize) -> *mut u8 {
        part_of(self.0.address(), offset)
    }

    #[inline]
    fn waker(&self) -> BorrowedWaker<'a> {
        self.0.waker()
    }

    #[inline]
    fn has_future(&self) -> bool {
        self.inside().header().stage.get() == Stage::Future
    }

    /// Leaves the inside of a task that waits, or has woken itself. Returns the runnable if the task was woken meanwhile
    /// and its executor has no queue: the caller runs it again.
    #[cfg_attr(not(debug_assertions), inline(always))]
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
    #[cfg_attr(not(debug_assertions), inline(always))]
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

    /// Leaves the inside of a task that has ended.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn finish_and_leave(self) -> (Done<'a>, Leave) {
        // Asked for again: the task may have moved.
        let header = self.inside().header();
        let leave = header.state.finish_and_leave(header.access_inside());
        (Done(self.0), leave)
    }

    /// Calls a destructor in the outermost frame of the task. Returns its panic.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn drop_in_frame(&self, asked: bool, drop: &mut dyn FnMut()) -> Result<(), Panic> {
        let (inside, waker) = (self.inside(), self.waker());
        Panic::catch_call(&mut || {
            let stopped = &inside.header().stopped;
            Frame::outermost(inside, waker.get(), inside.waits(), asked, stopped).within(&mut *drop);
        })
    }
}

/// The right of the thread that is inside a task of this type.
struct Entered<'a, F: Future, M>(Within<'a>, PhantomData<NonNull<Cell<F, M>>>);

impl<F: Future, M: Ending<F::Output>> Entered<'_, F, M> {
    /// Calls [`Ending::ended`], for a task whose outcome is in the slot. Returns how it has ended.
    #[inline]
    fn call_ended(&mut self) -> TaskEnd {
        let ending = self.0.part(Cell::<F, M>::ENDING_AT) as *const M;
        let outcome = self.0.part(Cell::<F, M>::BODY_AT) as *mut Outcome<F::Output>;
        // SAFETY: rule 2 of the header: this thread is inside, so the ending is not changed and the outcome is
        // this thread's alone. `go_on` calls this after the future was replaced by the outcome.
        let (ending, outcome) = unsafe { (&*ending, &mut *outcome) };
        ending.ended(self.0.inside(), outcome);
        TaskEnd::of(outcome)
    }

    /// Polls, or ends the task. Returns the runnable as [`Within::pause`] does.
    #[inline]
    fn go_on(mut self, call: Call, asked: bool) -> Option<Queued> {
        let task = self.0.0.address().cast();
        if self.0.has_future() {
            let future = WithFuture::<F, M>(&self.0, PhantomData);
            let calm = polls(task);
            // One branch for both: each is rare.
            if (!calm | (call == Call::Stop)) && future.0.inside().must_not_be_polled(call) {
                future.end_badly(Outcome::Stopped);
            } else {
                match future.poll(asked, calm) {
                    AfterPoll::Ended => {}
                    AfterPoll::Waits => return self.0.pause(false),
                    AfterPoll::WokenByItself => return self.0.pause(true),
                }
            }
        }
        if let Some(cold) = self.0.inside().cold() {
            // An operation that is released after this check wakes the task, and `pause` sees that.
            if !cold.is_empty() {
                return self.0.pause(false);
            }
            let end = self.call_ended();
            self.0.inside().observe_ended(end);
            self.0.inside().clear_cold();
        } else {
            self.call_ended();
        }
        let (done, leave) = self.0.finish_and_leave();
        Ended::<F, M>(done, PhantomData).leave(leave);
        None
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
struct WithFuture<'e, 'a, F: Future, M>(&'e Within<'a>, PhantomData<NonNull<Cell<F, M>>>);

impl<F: Future, M: Ending<F::Output>> WithFuture<'_, '_, F, M> {
    /// Polls the future. On a thread that is not calm the task may be watched. If it has ended, its outcome is in
    /// the slot then, and the future is gone.
    // Always: there is one caller, and a call would cost every poll twenty instructions.
    #[inline(always)]
    fn poll(self, asked: bool, calm: bool) -> AfterPoll {
        let (inside, future) = (self.0.inside(), self.0.part(Cell::<F, M>::BODY_AT) as *mut F);
        let waits = if calm {
            inside.waits()
        } else {
            inside.observe_begin(asked);
            inside.waits_for_watchers()
        };
        let waker = self.0.waker();
        let (mut polled, mut woken) = (Polled::Pending, false);
        let caught = Panic::catch_call(&mut || {
            let _budget = budget::of_poll();
            if asked {
                inside.pass_on_stop();
            }
            let frame = Frame::outermost(inside, waker.get(), waits, asked, &inside.header().stopped);
            // SAFETY: rule 2 of the header: this thread is inside while `self.0` exists. `go_on` has found the future
            // there, and only `finish` replaces it, which consumes `self`. It does not move until it is dropped.
            let future = unsafe { Pin::new_unchecked(&mut *future) };
            polled = frame.poll(future, &mut Context::from_waker(waker.get()));
            woken = frame.is_task_woken();
        });
        match (caught, polled) {
            (Ok(()), Polled::Pending) => {
                if !calm {
                    inside.observe_end();
                }
                return if woken { AfterPoll::WokenByItself } else { AfterPoll::Waits };
            }
            (Ok(()), Polled::Ready(value)) => match self.drop_future(asked) {
                Ok(()) => self.finish(Outcome::Value(value)),
                Err(panic) => self.finish(Outcome::Value(value).or_panic(panic)),
            },
            (Ok(()), Polled::Stopped) => self.end_badly(Outcome::Stopped),
            (Err(panic), _) => self.end_badly(Outcome::Panicked(panic)),
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
        if const { !core::mem::needs_drop::<F>() } {
            return Ok(());
        }
        let future = self.0.part(Cell::<F, M>::BODY_AT) as *mut F;
        // SAFETY: rule 2 of the header: this thread is inside while `self.0` exists, and `go_on` has found the future
        // there. It is dropped once: the callers, `poll` and `end_badly`, go on with `finish`, which replaces it.
        self.0.drop_in_frame(asked, &mut || unsafe { core::ptr::drop_in_place(future) })
    }

    /// Puts the outcome where the future was, which is gone.
    #[inline]
    fn finish(self, outcome: Outcome<F::Output>) {
        // SAFETY: rule 2 of the header: this thread is inside, and the future is gone.
        unsafe { (self.0.part(Cell::<F, M>::BODY_AT) as *mut Outcome<F::Output>).write(outcome) };
        self.0.inside().header().stage.set(Stage::Outcome);
    }
}

/// The right of the one thread that has a task to itself which has ended: no thread enters it any more. Until
/// the task has left, its own reference keeps the memory.
struct Done<'a>(Alive<'a>);

impl<'a> Done<'a> {
    /// Returns the header. The task is alive until it is freed, or its own reference given up; both consume
    /// `self`.
    #[inline]
    fn header(&self) -> &'a TaskHeader {
        self.0.header()
    }

    /// Lets a task leave whose parent was told already.
    #[cold]
    fn leave_after_all(self, left: &'static TaskKind) {
        self.header().stage.set(Stage::Delivered);
        // Set before the state says what comes: the receiver of a remote wake that the task may have to wait
        // for calls it through its kind.
        self.set_left(left);
        if self.header().state.leave_after_all(self.header().access()) != Leave::Later {
            self.drop_own_reference();
        }
    }

    /// Replaces the kind, after the parent was told: rule 6 of the header.
    #[inline]
    fn set_left(&self, left: &'static TaskKind) {
        // SAFETY: rule 6: the parent was told, and the task's own reference is still there. Setting the kind
        // twice, as a task does that leaves after all, does no harm.
        unsafe { self.header().set_left(left) };
    }

    /// Gives up the reference that the task has to itself.
    #[inline]
    fn drop_own_reference(self) {
        // SAFETY: the state has said that the task leaves as one that is counted, so its own reference is
        // still there, and `self`, which is consumed, is its owner.
        drop(unsafe { TaskRef::from_counted(self.0.address()) });
    }
}

/// The right of the one thread that has a task of this type to itself which has ended.
struct Ended<'a, F: Future, M>(Done<'a>, PhantomData<NonNull<Cell<F, M>>>);

impl<F: Future, M: Ending<F::Output>> Ended<'_, F, M> {
    /// Frees the task, if its last reference was dropped; or lets it leave, if the remote wake was received
    /// that it waited for. The stage says which.
    #[inline(never)]
    fn settle(self) {
        let header = self.0.header();
        match header.stage.get() {
            Stage::Future | Stage::Outcome | Stage::Delivered => self.free(),
            leaving => {
                // The thread that frees the task later comes here, too, and must not find it leaving.
                header.stage.set(Stage::Outcome);
                if leaving == Stage::Leaving {
                    self.leave_late();
                } else {
                    self.0.leave_after_all(Cell::<F, M>::LEFT);
                }
            }
        }
    }

    /// Tells the parent, frees the memory if nothing else refers to it, and then tells the waiter. The state says once
    /// that the task leaves, and then this is called.
    #[inline(always)]
    fn leave(self, leave: Leave) {
        if leave == Leave::Later {
            return;
        }
        let counted = leave == Leave::Counted;
        let task = self.0.0.address();
        let ending = part_of(task, Cell::<F, M>::ENDING_AT) as *const M;
        let outcome = part_of(task, Cell::<F, M>::BODY_AT) as *mut Outcome<F::Output>;
        // SAFETY: this thread has the task to itself, the state has said once that it leaves, and its outcome
        // is in the slot: so there is one `Leaving` and one `OutcomeSlot`. Both end before `self` does.
        let (ending, leaving) = unsafe { (&*ending, Leaving::new(task)) };
        let (Left(known), after) = ending.deliver(leaving, OutcomeSlot { outcome, _task: PhantomData });
        // Rule 6 of the header: unless the task is freed now, its kind is set before its reference is given up.
        if counted {
            self.0.set_left(Cell::<F, M>::LEFT);
            self.0.drop_own_reference();
        } else if known == Known::ToOthers {
            // The parent let others refer to it between the check of the references and `deliver`.
            self.0.leave_after_all(Cell::<F, M>::LEFT);
        } else if M::HANDLE {
            // A task that has a handle on the owner thread, or had one.
            self.0.set_left(Cell::<F, M>::LEFT);
            if self.0.header().state.left_to_handle() {
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
        let this = self.0.header();
        let leave = this.state.leave(this.access());
        self.leave(leave);
    }

    /// Frees the task, to which nothing refers any more.
    #[inline]
    fn free(self) {
        // SAFETY: this thread has the task to itself, and its body is gone: the future was dropped, and the
        // outcome taken by the parent or by the handle.
        unsafe { Vacated::new(self.0.0.address(), Cell::<F, M>::TYPE) }.destroy();
    }
}
