//! A task with its type, in one allocation: header, ending, and body. Here is the one function that knows the
//! type, [`Cell::call`], and every way through it.

#![allow(unsafe_code)]

use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::Context;

use convoke_core::raw::{Call, Frame, Header, Polled, WorkKind, budget};
use convoke_core::{InlineExecutor, Outcome, Panic};

use convoke_core::raw::watching::polls;

use super::header::{Stage, TaskHeader, drop_reference};
use super::inside::{Inside, not_on_owner_thread};
use super::memory::Vacated;
use super::reference::Alive;
use super::rerun::run_again;
use super::spawn_site::TaskKind;
use super::state::{Access, Leave, Pause};

/// Where the outcome of a task goes.
///
/// # Safety
/// `deliver` does not free the task, which its caller still uses. After `deliver` the parent link may be
/// gone.
pub(crate) unsafe trait Ending<T>: Sized {
    /// The number of references to the task, besides its own, when it is created.
    const REFERENCES: u32 = 0;
    /// True if there is a handle that stays on the task's owner thread.
    const HANDLE: bool = false;

    /// Called when the future is gone, the outcome is in `slot` and no operation is in flight, before the
    /// parent is told.
    ///
    /// # Safety
    /// Called once, from inside.
    unsafe fn ended(&self, task: NonNull<TaskHeader>, slot: NonNull<Outcome<T>>) {
        let _ = (task, slot);
    }

    /// Tells the parent, which no longer knows the task afterwards. Takes the outcome from `slot`, or leaves
    /// it there for a handle.
    ///
    /// # Safety
    /// Called once, after `ended`, on the thread that ended the task or received its remote wake.
    unsafe fn deliver(&self, task: NonNull<TaskHeader>, slot: NonNull<Outcome<T>>) -> Known;

    /// Called before the memory is freed. Drops an outcome that is still in `slot`.
    ///
    /// # Safety
    /// Called once, last, by the thread that has the task to itself.
    unsafe fn free(&self, slot: NonNull<Outcome<T>>) {
        let _ = slot;
    }
}

/// Says if the parent let others refer to a task that it knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Only the parent referred to the task.
    ToTheParent,
    /// The parent let others refer to the task, at some time before it was told that the task leaves.
    ToOthers,
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
    pub(crate) const ENDING_AT: usize = core::mem::offset_of!(Self, ending);

    /// Creates a task that holds its future.
    #[inline]
    pub(super) fn new(header: TaskHeader, ending: M, future: F) -> Self {
        Self { header, ending, body: Body { future: ManuallyDrop::new(future) } }
    }
}

/// The future, then its outcome. `TaskHeader::stage` says which.
union Body<F: Future> {
    future: ManuallyDrop<F>,
    outcome: ManuallyDrop<Outcome<F::Output>>,
}

/// Creates the panic of a task for which there was no memory.
pub(crate) fn no_memory<F>(location: &'static Location<'static>) -> Panic {
    Panic::new(format!(
        "the frame allocator has no memory left for the task at {location}, whose future has {} bytes",
        size_of::<F>()
    ))
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
        let cell = header.cast::<Self>();
        // Two functions, each with a stack frame of its own: the second needs little stack.
        // SAFETY: the caller holds the runnable, or dropped the last reference, so the task is alive.
        if unsafe { header.cast::<TaskHeader>().as_ref() }.state.is_done() {
            // The task has ended, and this thread has it to itself.
            Ended(cell).settle();
        } else {
            // The task has not ended, so the caller holds the runnable.
            Held(cell).run(call);
        }
    }

    /// Destroys a task that was not posted, and returns its future.
    ///
    /// # Safety
    /// The task is a `Self`, and neither queued with an executor nor in a list.
    pub(crate) unsafe fn take_back(task: NonNull<TaskHeader>) -> F {
        let cell = task.cast::<Self>();
        // SAFETY: the caller has the task to itself. The future is moved out, and all else dropped once.
        unsafe {
            let future = (&raw const (*cell.as_ptr()).body.future).cast::<F>().read();
            Vacated::<F, M>::new(task).destroy();
            future
        }
    }

    /// Returns the address of the ending.
    ///
    /// # Safety
    /// The task is a `Self` and alive.
    pub(crate) unsafe fn ending_at(task: NonNull<TaskHeader>) -> NonNull<M> {
        // SAFETY: the task is alive: the caller's promise. The address of a field is not null.
        unsafe { NonNull::new_unchecked(&raw mut (*task.cast::<Self>().as_ptr()).ending) }
    }

    /// Returns the address of the outcome.
    ///
    /// # Safety
    /// The task is a `Self` and alive.
    pub(crate) unsafe fn outcome_slot(task: NonNull<TaskHeader>) -> NonNull<Outcome<F::Output>> {
        // SAFETY: the task is alive: the caller's promise. The address of a field is not null.
        unsafe { NonNull::new_unchecked((&raw mut (*task.cast::<Self>().as_ptr()).body.outcome).cast()) }
    }
}

/// A runnable of a task that has not ended, and so the right to enter it. It is consumed by entering.
struct Held<F: Future, M>(NonNull<Cell<F, M>>);

impl<F: Future, M: Ending<F::Output>> Held<F, M> {
    /// Runs the task, or refuses to.
    #[inline(never)]
    fn run(self, call: Call) {
        let task = self.0.cast::<TaskHeader>();
        // SAFETY: rule 2 of the header: this thread holds the runnable, so the task is alive.
        let this = unsafe { task.as_ref() };
        let access = this.access();
        if access == Access::Remote {
            return match call {
                Call::Run => not_on_owner_thread(),
                // SAFETY: the task has not left: its runnable is given up by this call.
                Call::Stop => unsafe { Alive::new(task) }.refuse_remotely(),
            };
        }
        let asked = this.state.begin(access);
        // `begin` has set `RUNNING`: this thread is inside.
        if Entered(self.0).go_on(access, call, asked) {
            // SAFETY: the task is queued, and `go_on` has handed its runnable to this thread.
            unsafe { run_again(task) };
        }
    }
}

/// The right of the thread that is inside a task: rule 2 of the header holds while this exists. It is
/// consumed by leaving the inside.
struct Entered<F: Future, M>(NonNull<Cell<F, M>>);

impl<F: Future, M: Ending<F::Output>> Entered<F, M> {
    #[inline]
    fn task(&self) -> NonNull<TaskHeader> {
        self.0.cast()
    }

    #[inline]
    fn inside(&self) -> &Inside {
        // SAFETY: this thread is inside while `self` exists.
        unsafe { Inside::new(self.0.cast()) }
    }

    /// Returns the right to the future, if there still is one.
    #[inline]
    fn future(&mut self) -> Option<WithFuture<'_, F, M>> {
        (self.inside().header().stage.get() == Stage::Future)
            .then_some(WithFuture { cell: self.0, _entered: PhantomData })
    }

    /// Polls, or ends the task. Returns true if the task was woken meanwhile and its executor has no queue:
    /// the caller, which now holds the runnable, runs it again.
    #[inline]
    fn go_on(mut self, mut access: Access, call: Call, asked: bool) -> bool {
        if let Some(future) = self.future() {
            let calm = polls(future.cell.cast());
            if call == Call::Stop || !calm && future.inside().must_not_be_touched_here() {
                future.end_badly(Outcome::Stopped);
            } else if !future.poll(asked, calm) {
                return self.pause();
            }
        }
        let (task, inside) = (self.task(), self.inside());
        let this = inside.header();
        // SAFETY: the future is gone, and the outcome is in the slot; the task is a `Cell<F, M>` and alive.
        // `ended` and `clear` are called once: `finish_and_leave` below ends the task.
        unsafe {
            let (ending, slot) = (Cell::<F, M>::ending_at(task).as_ref(), Cell::<F, M>::outcome_slot(task));
            if let Some(cold) = inside.cold() {
                // An operation that is released after this check wakes the task, and `pause` sees that.
                if !cold.is_empty() {
                    return self.pause();
                }
                // The task may have moved. Without a cold state it has not.
                access = this.access();
                ending.ended(task, slot);
                cold.clear(this.parent_link().env().allocator());
            } else {
                ending.ended(task, slot);
            }
        }
        let leave = this.state.finish_and_leave(access);
        Ended(self.0).leave(leave);
        false
    }

    /// Leaves the inside of a task that goes on waiting. Returns true as `go_on` does.
    #[inline]
    fn pause(self) -> bool {
        let task = self.task();
        let inside = self.inside();
        let this = inside.header();
        // Asked for again: the task may just have moved. A task that has moved is shared.
        let access = this.access();
        if access == Access::Shared
            && let Some(cold) = inside.cold()
        {
            // SAFETY: this thread is inside, and the future borrows no environment between its polls.
            unsafe { cold.forget_past() };
        }
        match this.state.pause(access) {
            Pause::Idle => false,
            Pause::Post => {
                // SAFETY: `Pause::Post` makes this thread the holder of the runnable: rule 3 of the header.
                if access == Access::Shared && unsafe { this.env() }.executor().is(&InlineExecutor) {
                    // The inline executor would run the task on top of this run, deeper and deeper.
                    return true;
                }
                // SAFETY: `Pause::Post` makes this thread the holder of the runnable.
                unsafe { TaskHeader::post(task) };
                false
            }
        }
    }
}

/// The right of the thread inside to the future, which is still there. It is consumed by the poll that may
/// end it.
struct WithFuture<'a, F: Future, M> {
    cell: NonNull<Cell<F, M>>,
    _entered: PhantomData<&'a mut Entered<F, M>>,
}

impl<F: Future, M: Ending<F::Output>> WithFuture<'_, F, M> {
    #[inline]
    fn inside(&self) -> &Inside {
        // SAFETY: this thread is inside while the `Entered` exists, which is borrowed.
        unsafe { Inside::new(self.cell.cast()) }
    }

    #[inline]
    fn alive(&self) -> Alive<'_> {
        // SAFETY: the task does not leave while this thread is inside.
        unsafe { Alive::new(self.cell.cast()) }
    }

    #[inline]
    fn address(&self) -> *mut F {
        // SAFETY: the task is alive. The address of a field is taken, and nothing read.
        unsafe { (&raw mut (*self.cell.as_ptr()).body.future).cast::<F>() }
    }

    /// Polls the future. On a thread that is not calm the task may be watched. Returns true if it has ended:
    /// its outcome is in the slot then, and the future is gone.
    #[inline]
    fn poll(self, asked: bool, calm: bool) -> bool {
        let inside = self.inside();
        // SAFETY: the future is there, and this thread is inside. It does not move until it is dropped in
        // place.
        let future = unsafe { Pin::new_unchecked(&mut *self.address()) };
        let waits = if calm { inside.waits() } else { inside.waits_for_watchers() };
        let polled = self.alive().with_waker(|waker| {
            let mut cx = Context::from_waker(waker);
            Panic::catch(|| {
                let _budget = budget::of_poll();
                if asked {
                    inside.pass_on_stop();
                }
                Frame::outermost(inside, waker, waits, asked, &inside.header().stopped).poll(future, &mut cx)
            })
        });
        match polled {
            Ok(Polled::Pending) => return false,
            Ok(Polled::Ready(value)) => {
                let dropped = self.drop_future(asked);
                match dropped {
                    Ok(()) => self.finish(Outcome::Value(value)),
                    Err(panic) => self.finish(Outcome::Value(value).or_panic(panic)),
                }
            }
            Ok(Polled::Stopped) => self.end_badly(Outcome::Stopped),
            Err(panic) => self.end_badly(Outcome::Panicked(panic)),
        }
        true
    }

    /// Drops the future, unless this is not its thread, and puts this outcome into the slot.
    #[cold]
    #[inline(never)]
    fn end_badly(self, outcome: Outcome<F::Output>) {
        let inside = self.inside();
        let outcome = if inside.must_not_be_touched_here() {
            // SAFETY: rule 3 of the header: this thread is inside.
            let location = unsafe { inside.header().location() };
            eprintln!(
                "convoke: the executor of a task that is not `Send` (spawned at {location}) has ended before it; its frame \
                 cannot be destroyed on another thread, and is leaked"
            );
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
        let (inside, future) = (self.inside(), self.address());
        self.alive().with_waker(|waker| {
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
        // SAFETY: rule 2 of the header: this thread is inside. The task is a `Cell<F, M>`.
        unsafe { Cell::<F, M>::outcome_slot(self.cell.cast()).write(outcome) };
        self.inside().header().stage.set(Stage::Outcome);
    }
}

/// The right of the one thread that has a task to itself which has ended: no thread enters it any more. Until
/// the task has left, its own reference keeps the memory.
struct Ended<F: Future, M>(NonNull<Cell<F, M>>);

impl<F: Future, M: Ending<F::Output>> Ended<F, M> {
    #[inline]
    fn header(&self) -> &TaskHeader {
        // SAFETY: the task is alive until it is freed, or its own reference given up; both consume `self`.
        unsafe { self.0.cast::<TaskHeader>().as_ref() }
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

    /// Tells the parent, and frees the memory if nothing else refers to it.
    #[inline(always)]
    fn leave(self, leave: Leave) {
        if leave == Leave::Later {
            return;
        }
        let task = self.0.cast::<TaskHeader>();
        // SAFETY: the task is a `Cell<F, M>` and alive; its outcome is in the slot. The state says once that
        // it leaves.
        let known = unsafe {
            let slot = Cell::<F, M>::outcome_slot(task);
            Cell::<F, M>::ending_at(task).as_ref().deliver(task, slot)
        };
        // Rule 6 of the header: unless the task is freed now, its kind is set before its reference is given up.
        match leave {
            Leave::Counted => {
                self.set_left();
                self.drop_own_reference();
            }
            // The parent let others refer to it between the check of the references and `deliver`.
            _ if known == Known::ToOthers => self.leave_after_all(),
            // A task that has a handle on the owner thread, or had one.
            Leave::Here | Leave::Alone if M::HANDLE => {
                self.set_left();
                if self.header().state.left_to_handle() {
                    self.free();
                }
            }
            Leave::Here | Leave::Alone | Leave::Later => self.free(),
        }
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
        let this = self.header();
        this.stage.set(Stage::Delivered);
        // Set before the state says what comes: the receiver of a remote wake that the task may have to wait
        // for calls it through its kind.
        self.set_left();
        match this.state.leave_after_all(this.access()) {
            Leave::Later => {}
            Leave::Alone | Leave::Here | Leave::Counted => self.drop_own_reference(),
        }
    }

    /// Replaces the kind, after the parent was told: rule 6 of the header.
    #[inline]
    fn set_left(&self) {
        // SAFETY: the parent was told, and the task's own reference is still there. Setting the kind twice,
        // as a task does that leaves after all, does no harm.
        unsafe { self.header().set_left(Cell::<F, M>::LEFT) };
    }

    /// Gives up the reference that the task has to itself.
    #[inline]
    fn drop_own_reference(self) {
        // SAFETY: the state has said that the task leaves as one that is counted, so the reference is still
        // there.
        unsafe { drop_reference(self.0.cast()) };
    }

    /// Frees the task, to which nothing refers any more.
    #[inline]
    fn free(self) {
        let task = self.0.cast::<TaskHeader>();
        // SAFETY: the task is a `Cell<F, M>`, this thread has it to itself, and its future is gone.
        unsafe {
            let slot = Cell::<F, M>::outcome_slot(task);
            Cell::<F, M>::ending_at(task).as_ref().free(slot);
            Vacated::<F, M>::new(task).destroy();
        }
    }
}
