//! A task in memory: header, what becomes of its outcome, and room for the future or the outcome. One allocation. Here is
//! the one function that knows its type, and all ways through it.

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

/// What becomes of the outcome.
///
/// # Safety
/// `deliver` lets nobody free the task: the caller still has it. After `deliver` has told the parent, the place may be gone.
pub(crate) unsafe trait Ending<T>: Sized {
    /// Where the memory may be: with others who refer to the task, besides itself, when it is made.
    const REFERENCES: u32 = 0;
    /// Whether there is a handle that does not leave the task's home.
    const HANDLE: bool = false;

    /// The body is gone, the outcome is in `room`, and no operation is in flight. Nobody has been told.
    ///
    /// # Safety
    /// Called once, from inside.
    unsafe fn ended(&self, task: NonNull<TaskHeader>, room: NonNull<Outcome<T>>) {
        let _ = (task, room);
    }

    /// The task has left: its parent is told, and knows it no longer. The outcome is in `room`, and is taken, or stays there
    /// for a handle.
    ///
    /// # Safety
    /// Called once, after `ended`, from where the task ended.
    unsafe fn deliver(&self, task: NonNull<TaskHeader>, room: NonNull<Outcome<T>>) -> Known;

    /// The memory is freed. An outcome that is still in the room is dropped now.
    ///
    /// # Safety
    /// Called once, last, by whoever has the task to himself.
    unsafe fn free(&self, room: NonNull<Outcome<T>>) {
        let _ = room;
    }
}

/// Whether the parent has let others refer to a task that it knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has not.
    ToTheParent,
    /// It has, at some time before it was told that the task leaves.
    ToOthers,
}

#[repr(C)]
pub(crate) struct Cell<F: Future, M> {
    // First, so that a pointer to it is a pointer to all of it.
    header: TaskHeader,
    ending: M,
    body: Body<F>,
}

impl<F: Future, M> Cell<F, M> {
    /// Where the ending lies.
    pub(crate) const ENDING_AT: usize = core::mem::offset_of!(Self, ending);

    #[inline]
    pub(super) fn new(header: TaskHeader, ending: M, future: F) -> Self {
        Self { header, ending, body: Body { future: ManuallyDrop::new(future) } }
    }
}

/// `Stage` says what is in it.
union Body<F: Future> {
    future: ManuallyDrop<F>,
    outcome: ManuallyDrop<Outcome<F::Output>>,
}

/// The panic of a task for which there was no memory.
pub(crate) fn no_memory<F>(location: &'static Location<'static>) -> Panic {
    Panic::new(format!(
        "the frame allocator has no memory left for the task at {location}, whose future has {} bytes",
        size_of::<F>()
    ))
}

impl<F: Future, M: Ending<F::Output>> Cell<F, M> {
    /// What queues know of it.
    pub(super) const WORK: WorkKind = WorkKind::new(Self::call);

    /// Its kind when it has left its place.
    const LEFT: &'static TaskKind = &TaskKind::left(Self::WORK);

    /// The one function that knows the type: runs the task, refuses to, takes it to its end, or frees it.
    ///
    /// # Safety
    /// `header` is that of a `Self`, and the caller holds its runnable, or was told to call this.
    pub(super) unsafe fn call(header: NonNull<Header>, call: Call) {
        let task = header.cast::<TaskHeader>();
        // Two ways, each with a stack of its own: the second is short.
        // SAFETY: the caller holds the runnable, or has the task to himself.
        unsafe { if task.as_ref().state.is_done() { Self::settle(task) } else { Self::run(task, call) } }
    }

    /// Frees a task that has ended, or takes it to where it can be freed.
    ///
    /// # Safety
    /// It has ended, and the caller was told to call this.
    #[inline(never)]
    unsafe fn settle(task: NonNull<TaskHeader>) {
        // SAFETY: the caller's.
        unsafe {
            let this = task.as_ref();
            match this.stage.get() {
                Stage::Future | Stage::Outcome | Stage::Delivered => Self::free(task),
                leaving => {
                    // Whoever frees it later comes here, too, and must not find it leaving.
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

    /// # Safety
    /// The caller holds the runnable, and the task has not ended.
    #[inline(never)]
    unsafe fn run(task: NonNull<TaskHeader>, call: Call) {
        // SAFETY: the caller's.
        unsafe {
            let this = task.as_ref();
            let access = this.from();
            if access == Access::Remote {
                return match call {
                    Call::Run => not_at_home(),
                    Call::Stop => TaskHeader::act(task, this.state.refuse_away()),
                };
            }
            let asked = this.state.begin(access);
            if Self::go_on(task, access, call, asked) {
                run_again(task);
            }
        }
    }

    /// Polls, or takes the task to its end. True: it was woken meanwhile, and its executor has no queue: run it again.
    ///
    /// # Safety
    /// The caller is inside; and not any more when this returns.
    #[inline]
    unsafe fn go_on(task: NonNull<TaskHeader>, access: Access, call: Call, asked: bool) -> bool {
        // SAFETY: rule 2 of the header: we are inside.
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
            if let Some(side) = this.side() {
                // An operation that is released after this check wakes us, and `pause` sees that.
                if !side.is_empty() {
                    return Self::pause(task);
                }
                // It may have moved. Without a side table it has not.
                access = this.from();
                Self::ending(task).ended(task, Self::room(task));
                side.clear(this.place().env().allocator());
            } else {
                Self::ending(task).ended(task, Self::room(task));
            }
            Self::leave(task, this.state.finish_and_leave(access));
            false
        }
    }

    /// True: see `go_on`.
    ///
    /// # Safety
    /// The caller is inside, and is not any more when this returns.
    #[inline]
    unsafe fn pause(task: NonNull<TaskHeader>) -> bool {
        // SAFETY: the caller's. `from` is asked for again: the task may just have moved.
        unsafe {
            let this = task.as_ref();
            let access = this.from();
            // A task that has moved is shared.
            if access == Access::Shared
                && let Some(side) = this.side()
            {
                side.forget_past();
            }
            match this.state.pause(access) {
                Pause::Idle => false,
                // The inline executor would run it on top of us, deeper and deeper.
                Pause::Post if access == Access::Shared && this.env().executor().is(&InlineExecutor) => true,
                Pause::Post => {
                    TaskHeader::post(task);
                    false
                }
            }
        }
    }

    /// Polls the future, which is asked to stop or not; on a thread that is not calm it may be watched. True if it has ended:
    /// its outcome is in the room then, and the future is gone.
    ///
    /// # Safety
    /// The caller is inside, and there is a future.
    #[inline]
    unsafe fn poll(task: NonNull<TaskHeader>, asked: bool, calm: bool) -> bool {
        // SAFETY: rule 2 of the header; the future stays where it is until it is dropped there. The waker is for the time of
        // the poll, and the task stays for longer.
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
                    Ok(()) => Self::room(task).write(Outcome::Value(value)),
                    Err(panic) => Self::room(task).write(Outcome::Value(value).or_panic(panic)),
                },
                Ok(Polled::Stopped) => Self::end_badly(task, Outcome::Stopped),
                Err(panic) => Self::end_badly(task, Outcome::Panicked(panic)),
            }
            true
        }
    }

    /// Drops the future, unless this is not its thread, and puts this outcome into the room.
    ///
    /// # Safety
    /// The caller is inside, and there is a future; afterwards there is none.
    #[cold]
    #[inline(never)]
    unsafe fn end_badly(task: NonNull<TaskHeader>, outcome: Outcome<F::Output>) {
        // SAFETY: the caller's.
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
            Self::room(task).write(outcome);
        }
    }

    /// Drops the future where it is. If that panics, so did the task.
    ///
    /// # Safety
    /// The caller is inside, on the future's thread, and there is a future; afterwards there is none.
    #[inline]
    unsafe fn drop_future(task: NonNull<TaskHeader>, asked: bool) -> Result<(), Panic> {
        if !core::mem::needs_drop::<F>() {
            return Ok(());
        }
        // SAFETY: rule 2 of the header.
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

    /// Tells the parent, and frees the memory if nobody else refers to it.
    ///
    /// # Safety
    /// The task has ended, its outcome is in the room, and its state has said that it leaves like this.
    #[inline(always)]
    unsafe fn leave(task: NonNull<TaskHeader>, leave: Leave) {
        // SAFETY: nobody goes in any more. The task's own reference keeps the memory until the last line; the place is not
        // looked at after `deliver`. Rule 6 of the header: unless it is freed now, the kind is set before the reference is given up.
        unsafe {
            if leave == Leave::Later {
                return;
            }
            let known = Self::ending(task).deliver(task, Self::room(task));
            match leave {
                Leave::Counted => {
                    task.as_ref().set_left(Self::LEFT);
                    drop_reference(task);
                }
                // Between the look at the references and the parent's last one at the task.
                _ if known == Known::ToOthers => Self::leave_after_all(task),
                // One that has such a handle, or had it.
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

    /// Leaves when the letter that it waited for was opened.
    ///
    /// # Safety
    /// The task has ended, and its outcome is in the room.
    #[cold]
    unsafe fn leave_late(task: NonNull<TaskHeader>) {
        // SAFETY: the caller's.
        unsafe {
            let this = task.as_ref();
            Self::leave(task, this.state.leave(this.from()));
        }
    }

    /// Leaves when the parent was told already.
    ///
    /// # Safety
    /// The task has ended and delivered.
    #[cold]
    unsafe fn leave_after_all(task: NonNull<TaskHeader>) {
        // SAFETY: as in `leave`.
        unsafe {
            let this = task.as_ref();
            this.stage.set(Stage::Delivered);
            // Before the state says what comes: whoever opens the letter that it may have to wait for calls it by its kind.
            this.set_left(Self::LEFT);
            match this.state.leave_after_all(this.from()) {
                Leave::Later => {}
                Leave::Alone | Leave::Here | Leave::Counted => drop_reference(task),
            }
        }
    }

    /// # Safety
    /// Nobody refers to the task any more.
    #[inline]
    unsafe fn free(task: NonNull<TaskHeader>) {
        // SAFETY: the caller's.
        unsafe {
            Self::ending(task).free(Self::room(task));
            Self::destroy(task);
        }
    }

    /// # Safety
    /// The task is a `Self` and there.
    unsafe fn ending<'a>(task: NonNull<TaskHeader>) -> &'a M {
        // SAFETY: the caller's; the ending is not changed.
        unsafe { Self::ending_at(task).as_ref() }
    }

    /// Undoes the making of a task that nobody knows yet: its future comes back.
    ///
    /// # Safety
    /// The task is a `Self`, and nothing of it is queued or listed.
    pub(crate) unsafe fn take_back(task: NonNull<TaskHeader>) -> F {
        let cell = task.cast::<Self>();
        // SAFETY: the caller's: it is ours alone. The future is moved out, and all else dropped once.
        unsafe {
            let future = (&raw const (*cell.as_ptr()).body.future).cast::<F>().read();
            Self::destroy(task);
            future
        }
    }

    /// # Safety
    /// The task is a `Self` and there.
    pub(crate) unsafe fn ending_at(task: NonNull<TaskHeader>) -> NonNull<M> {
        // SAFETY: the caller's; a field has an address.
        unsafe { NonNull::new_unchecked(&raw mut (*task.cast::<Self>().as_ptr()).ending) }
    }

    /// # Safety
    /// The task is a `Self` and there.
    pub(crate) unsafe fn room(task: NonNull<TaskHeader>) -> NonNull<Outcome<F::Output>> {
        // SAFETY: the caller's; a field has an address.
        unsafe { NonNull::new_unchecked((&raw mut (*task.cast::<Self>().as_ptr()).body.outcome).cast()) }
    }
}

/// An executor says that all its work runs at one home, and runs some elsewhere.
#[cold]
fn not_at_home() -> ! {
    eprintln!("convoke: an executor ran a task outside the home that it had named for it. Aborting.");
    std::process::abort()
}
