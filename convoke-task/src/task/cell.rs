//! A task with its type, in one allocation: header, ending, and body. Here is the one function that knows the
//! type, [`Cell::call`], and every way through it.

#![allow(unsafe_code)]

use core::future::Future;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::Context;

use convoke_core::raw::{Call, Frame, Header, Polled, WorkKind};
use convoke_core::{InlineExecutor, Outcome, Panic};

use convoke_core::raw::watching::polls;

use super::header::{Stage, TaskHeader, drop_reference};
use super::inside::Inside;
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
        let task = header.cast::<TaskHeader>();
        // Two functions, each with a stack frame of its own: the second needs little stack.
        // SAFETY: the caller holds the runnable, or dropped the last reference, and so has the task to
        // itself.
        unsafe { if task.as_ref().state.is_done() { Self::settle(task) } else { Self::run(task, call) } }
    }

    /// Frees a task that has ended, or lets it leave.
    ///
    /// # Safety
    /// The task is a `Self` and has ended. The caller dropped its last reference, or received the remote wake
    /// it waits for.
    #[inline(never)]
    unsafe fn settle(task: NonNull<TaskHeader>) {
        // SAFETY: no thread enters a task that has ended: rule 2 of the header gives `stage` and the body to
        // the caller. `stage` says if it was the last reference, or a remote wake that the task waits for.
        unsafe {
            let this = task.as_ref();
            match this.stage.get() {
                Stage::Future | Stage::Outcome | Stage::Delivered => Self::free(task),
                leaving => {
                    // The thread that frees the task later comes here, too, and must not find it leaving.
                    this.stage.set(Stage::Outcome);
                    if leaving == Stage::Leaving {
                        Self::leave_late(task);
                    } else {
                        Self::leave_after_all(task);
                    }
                }
            }
        }
    }

    /// Runs the task, or refuses to, as the holder of its runnable.
    ///
    /// # Safety
    /// The caller holds the runnable, and the task has not ended.
    #[inline(never)]
    unsafe fn run(task: NonNull<TaskHeader>, call: Call) {
        // SAFETY: rule 2 of the header: the caller holds the runnable. After `begin` it is inside.
        unsafe {
            let this = task.as_ref();
            let access = this.access();
            if access == Access::Remote {
                return match call {
                    Call::Run => not_on_owner_thread(),
                    Call::Stop => TaskHeader::act(task, this.state.refuse_away()),
                };
            }
            let asked = this.state.begin(access);
            if Self::go_on(task, access, call, asked) {
                run_again(task);
            }
        }
    }

    /// Polls, or ends the task. Returns true if the task was woken meanwhile and its executor has no queue:
    /// the caller, which now holds the runnable, runs it again.
    ///
    /// # Safety
    /// The caller is inside, and is not any more when this returns.
    #[inline]
    unsafe fn go_on(task: NonNull<TaskHeader>, access: Access, call: Call, asked: bool) -> bool {
        // SAFETY: rule 2 of the header: this thread is inside. `stage` says what is in the body.
        // `finish_and_leave` says how the task leaves.
        unsafe {
            let this = task.as_ref();
            if this.stage.get() == Stage::Future {
                let calm = polls(task.cast());
                if call == Call::Stop || !calm && Inside::new(task).must_not_be_touched_here() {
                    Self::end_badly(task, Outcome::Stopped);
                } else if !Self::poll(task, asked, calm) {
                    return Self::pause(task);
                }
                this.stage.set(Stage::Outcome);
            }
            let mut access = access;
            if let Some(cold) = this.cold() {
                // An operation that is released after this check wakes the task, and `pause` sees that.
                if !cold.is_empty() {
                    return Self::pause(task);
                }
                // The task may have moved. Without a cold state it has not.
                access = this.access();
                Self::ending(task).ended(task, Self::outcome_slot(task));
                cold.clear(this.parent_link().env().allocator());
            } else {
                Self::ending(task).ended(task, Self::outcome_slot(task));
            }
            Self::leave(task, this.state.finish_and_leave(access));
            false
        }
    }

    /// Leaves the inside of a task that goes on waiting. Returns true as `go_on` does.
    ///
    /// # Safety
    /// The caller is inside, and is not any more when this returns.
    #[inline]
    unsafe fn pause(task: NonNull<TaskHeader>) -> bool {
        // SAFETY: rule 2 of the header: this thread is inside. `Pause::Post` makes it the holder of the
        // runnable. `access` is asked for again: the task may just have moved.
        unsafe {
            let this = task.as_ref();
            let access = this.access();
            // A task that has moved is shared.
            if access == Access::Shared
                && let Some(cold) = this.cold()
            {
                cold.forget_past();
            }
            match this.state.pause(access) {
                Pause::Idle => false,
                // The inline executor would run the task on top of this run, deeper and deeper.
                Pause::Post if access == Access::Shared && this.env().executor().is(&InlineExecutor) => true,
                Pause::Post => {
                    TaskHeader::post(task);
                    false
                }
            }
        }
    }

    /// Polls the future. On a thread that is not calm the task may be watched. Returns true if it has ended:
    /// its outcome is in the slot then, and the future is gone.
    ///
    /// # Safety
    /// The caller is inside, and there is a future.
    #[inline]
    unsafe fn poll(task: NonNull<TaskHeader>, asked: bool, calm: bool) -> bool {
        // SAFETY: rule 2 of the header: this thread is inside, and there is a future: the caller's promise.
        // The future does not move until it is dropped in place. The borrowed waker is used for the time of
        // the poll; the task stays for longer.
        unsafe {
            let inside = Inside::new(task);
            let future =
                Pin::new_unchecked(&mut *(&raw mut (*task.cast::<Self>().as_ptr()).body.future).cast::<F>());
            let waker = TaskHeader::borrowed_waker(task);
            let mut cx = Context::from_waker(&waker);
            let header = inside.header();
            let waits = if calm { header.waits() } else { header.waits_for_watchers() };
            let polled = Panic::catch(|| {
                if asked {
                    inside.pass_on_stop();
                }
                Frame::outermost(inside, &waker, waits, asked, &header.stopped).poll(future, &mut cx)
            });
            match polled {
                Ok(Polled::Pending) => return false,
                Ok(Polled::Ready(value)) => match Self::drop_future(task, asked) {
                    Ok(()) => Self::outcome_slot(task).write(Outcome::Value(value)),
                    Err(panic) => Self::outcome_slot(task).write(Outcome::Value(value).or_panic(panic)),
                },
                Ok(Polled::Stopped) => Self::end_badly(task, Outcome::Stopped),
                Err(panic) => Self::end_badly(task, Outcome::Panicked(panic)),
            }
            true
        }
    }

    /// Drops the future, unless this is not its thread, and puts this outcome into the slot.
    ///
    /// # Safety
    /// The caller is inside, and there is a future; afterwards there is none.
    #[cold]
    #[inline(never)]
    unsafe fn end_badly(task: NonNull<TaskHeader>, outcome: Outcome<F::Output>) {
        // SAFETY: rule 2 of the header: the caller is inside, and there is a future.
        unsafe {
            let inside = Inside::new(task);
            let outcome = if inside.must_not_be_touched_here() {
                eprintln!(
                    "convoke: the executor of a task that is not `Send` (spawned at {}) has ended before it; its frame \
                     cannot be destroyed on another thread, and is leaked",
                    inside.header().location()
                );
                outcome
            } else {
                match Self::drop_future(task, inside.header().state.stop_asked()) {
                    Ok(()) => outcome,
                    Err(panic) => outcome.or_panic(panic),
                }
            };
            Self::outcome_slot(task).write(outcome);
        }
    }

    /// Drops the future in place. A panic of its destructor is returned.
    ///
    /// # Safety
    /// The caller is inside, on the future's thread, and there is a future; afterwards there is none.
    #[inline]
    unsafe fn drop_future(task: NonNull<TaskHeader>, asked: bool) -> Result<(), Panic> {
        if !core::mem::needs_drop::<F>() {
            return Ok(());
        }
        // SAFETY: rule 2 of the header: the caller is inside, on the future's thread. The future is not used
        // again.
        unsafe {
            let inside = Inside::new(task);
            let future = (&raw mut (*task.cast::<Self>().as_ptr()).body.future).cast::<F>();
            let waker = TaskHeader::borrowed_waker(task);
            Panic::catch(|| {
                let header = inside.header();
                let frame = Frame::outermost(inside, &waker, header.waits(), asked, &header.stopped);
                frame.within(|| future.drop_in_place());
            })
        }
    }

    /// Tells the parent, and frees the memory if nothing else refers to it.
    ///
    /// # Safety
    /// The task has ended, its outcome is in the slot, and its state has just said that it leaves like this.
    #[inline(always)]
    unsafe fn leave(task: NonNull<TaskHeader>, leave: Leave) {
        // SAFETY: no thread enters a task that has ended. Its own reference keeps the memory until it is
        // given up in the last step; the parent link is not used after `deliver`. Rule 6 of the header:
        // unless the task is freed now, its kind is set before the reference is given up.
        unsafe {
            if leave == Leave::Later {
                return;
            }
            let known = Self::ending(task).deliver(task, Self::outcome_slot(task));
            match leave {
                Leave::Counted => {
                    task.as_ref().set_left(Self::LEFT);
                    drop_reference(task);
                }
                // The parent let others refer to it between the check of the references and `deliver`.
                _ if known == Known::ToOthers => Self::leave_after_all(task),
                // A task that has a handle on the owner thread, or had one.
                Leave::Here | Leave::Alone if M::HANDLE => {
                    let this = task.as_ref();
                    this.set_left(Self::LEFT);
                    if this.state.left_to_handle() {
                        Self::free(task);
                    }
                }
                Leave::Here | Leave::Alone | Leave::Later => Self::free(task),
            }
        }
    }

    /// Lets a task leave when the remote wake that it waited for was received.
    ///
    /// # Safety
    /// The task has ended, and its outcome is in the slot.
    #[cold]
    unsafe fn leave_late(task: NonNull<TaskHeader>) {
        // SAFETY: the task has ended and its outcome is in the slot: the caller's promise. The state says how
        // it leaves.
        unsafe {
            let this = task.as_ref();
            Self::leave(task, this.state.leave(this.access()));
        }
    }

    /// Lets a task leave whose parent was told already.
    ///
    /// # Safety
    /// The task has ended and delivered.
    #[cold]
    unsafe fn leave_after_all(task: NonNull<TaskHeader>) {
        // SAFETY: no thread enters a task that has ended, and its own reference keeps the memory until it is
        // dropped here.
        unsafe {
            let this = task.as_ref();
            this.stage.set(Stage::Delivered);
            // Set before the state says what comes: the receiver of a remote wake that the task may have to
            // wait for calls it through its kind.
            this.set_left(Self::LEFT);
            match this.state.leave_after_all(this.access()) {
                Leave::Later => {}
                Leave::Alone | Leave::Here | Leave::Counted => drop_reference(task),
            }
        }
    }

    /// Frees the task.
    ///
    /// # Safety
    /// Nothing refers to the task any more.
    #[inline]
    unsafe fn free(task: NonNull<TaskHeader>) {
        // SAFETY: the caller has the task to itself.
        unsafe {
            Self::ending(task).free(Self::outcome_slot(task));
            Self::destroy(task);
        }
    }

    /// Returns the ending.
    ///
    /// # Safety
    /// The task is a `Self` and alive for `'a`.
    unsafe fn ending<'a>(task: NonNull<TaskHeader>) -> &'a M {
        // SAFETY: the task is alive, and its ending does not change.
        unsafe { Self::ending_at(task).as_ref() }
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
            Self::destroy(task);
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

/// Aborts: an executor named an owner thread, and ran the task on another one.
#[cold]
fn not_on_owner_thread() -> ! {
    eprintln!(
        "convoke: an executor ran a task on another thread than the owner thread that it had named. Aborting."
    );
    std::process::abort()
}
