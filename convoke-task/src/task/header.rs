//! The part of a task that does not depend on its future's type: what queues, wakers and parents know of it.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::mem::MaybeUninit;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;

use convoke_core::raw::sync::atomic::{AtomicU32, Ordering};
use convoke_core::raw::{Header, OwnerId, Runnable};
use convoke_core::{Env, ExecutorRef, StopReason};

use super::cold::{ColdState, no_memory};
use super::inside::Inside;
use super::memory::Memory;
use super::parent_link::{Links, List, ParentLink};
use super::reference::{Alive, TaskRef};
use super::spawn_site::{Sites, TaskKind};
use super::state::{Access, State, Wake};

/// The header of a task. The rules of which thread may touch which field:
/// 1. `state` and `owner` are atomic and open to every thread that has a reference to the task, or that knows
///    for another reason that the task has not left. They say which thread may do what.
/// 2. `runnable`, `stage`, `stopped`, `fixed` and the body belong to the one thread that holds the runnable
///    or is inside (`RUNNING`).
/// 3. The parent link and the kind ([`TaskKind`]) stay until the task has left. They may be read from inside,
///    by the holder of the runnable, and by a thread that was told to send a remote wake (`Wake::Send`), for
///    which the task waits. A parent that asks for a stop while the task may leave (`Known::ToOthers`) is
///    none of these: it passes the parent link itself.
/// 4. `links` and `list` belong to the parent, under its lock.
/// 5. An inspector that finds the task in a list of its parent, under the parent's lock, may read the kind
///    and where the task waits. The kind changes once, from inside, to the copy in the cold state (`COLD`),
///    which is freed with the task. Where the task waits is written from inside into the queue link of the
///    runnable, which is unused then, and is lost when the task is queued again. For a watched task the cold
///    state stores it.
/// 6. A task that has left leads to no spawn site: its kind is a `static`, or the copy in its cold state. It
///    is set after the parent was told, and before the task gives up its own reference or waits for a remote
///    wake of its parent: the thread that frees the task reads it, and so does the receiver of that remote
///    wake.
#[repr(C)]
pub(crate) struct TaskHeader {
    /// First, so that a pointer to the task is a pointer to it.
    pub(super) runnable: Header,
    pub(super) state: State,
    /// The number of the owner thread, or zero if the task is shared.
    owner: AtomicU32,
    pub(super) stage: Cell<Stage>,
    /// True if something in the outermost frame has ended as stopped.
    pub(super) stopped: Cell<bool>,
    /// The list of its parent that the task is in: rule 4.
    pub(crate) list: Cell<List>,
    /// The allocator of its memory, and the flags `LOCAL` and `COLD`, in one byte.
    fixed: Cell<u8>,
    /// Initialised when the task is put into a list.
    links: UnsafeCell<MaybeUninit<Links>>,
}

/// The future must not leave its thread.
const LOCAL: u8 = 1 << 7;
/// There is a cold state, and the kind is the copy in it.
const COLD: u8 = 1 << 6;

/// The contents of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The future.
    Future,
    /// The outcome. The task waits for its operations.
    Outcome,
    /// The outcome if a handle wants it, else nothing. The parent was told.
    Delivered,
    /// The outcome, and the receiver of a remote wake was told to let the task leave.
    Leaving,
    /// Contents as with `Delivered`, and the receiver of a remote wake was told to let the task leave.
    LeavingDelivered,
}

// SAFETY: rules 1 to 6 give each field that is not atomic to one thread at a time.
unsafe impl Sync for TaskHeader {}

impl TaskHeader {
    /// Creates the header of a queued task in memory of this kind. The caller posts the runnable, whose kind
    /// is a [`TaskKind`].
    #[inline]
    pub(super) fn new(runnable: Header, state: State, owner: OwnerId, memory: Memory, local: bool) -> Self {
        Self {
            runnable,
            state,
            owner: AtomicU32::new(owner.number()),
            stage: Cell::new(Stage::Future),
            stopped: Cell::new(false),
            list: Cell::new(List::Running),
            fixed: Cell::new(memory as u8 | if local { LOCAL } else { 0 }),
            links: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Marks a task that was not posted yet as asked to stop.
    ///
    /// # Safety
    /// The task is alive.
    pub(crate) unsafe fn stop_from_the_beginning(task: NonNull<Self>) {
        // SAFETY: the task is alive: the caller's promise. It is queued already, so the result asks for
        // nothing.
        let _ = unsafe { task.as_ref() }.state.ask_stop(Access::Local);
    }

    /// Moves a task that was not posted yet to another parent link.
    ///
    /// # Safety
    /// The caller has the task to itself, and the parent link stays until the task has left.
    pub(crate) unsafe fn set_place(task: NonNull<Self>, link: NonNull<ParentLink>) {
        // SAFETY: rule 2: the caller has the task to itself. The kind leads to the new parent link, which
        // stays.
        unsafe {
            let (this, kind) = (&mut *task.as_ptr(), *task.as_ref().kind());
            let site = Sites::find(Pin::new_unchecked(link.as_ref()), kind.work, kind.location);
            this.runnable.set_kind(site.expect("the first spawn site needs no memory").cast());
            this.owner = AtomicU32::new(link.as_ref().home().number());
        }
    }

    /// Returns the kind. Another thread may have replaced it a moment ago, from inside: hence `Acquire` in
    /// `Header`.
    ///
    /// # Safety
    /// Rule 3, or rule 5.
    #[inline]
    pub(super) unsafe fn kind(&self) -> &TaskKind {
        // SAFETY: rule 3 or 5, the caller's promise: the kind is alive. Only kinds of tasks are stored in a
        // task's header.
        unsafe { self.runnable.kind().cast().as_ref() }
    }

    /// Returns the line that spawned the task.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    pub(crate) unsafe fn location(&self) -> &'static Location<'static> {
        // SAFETY: rule 3: the caller's promise.
        unsafe { self.kind() }.location
    }

    /// Replaces the kind by one that outlives the parent, after the task has left: rule 6.
    ///
    /// # Safety
    /// Called once, by the thread that lets the task leave, at the time that rule 6 names.
    #[inline]
    pub(super) unsafe fn set_left(&self, kind: &'static TaskKind) {
        if self.fixed.get() & COLD == 0 {
            // SAFETY: the kind is `'static`, and the task is not queued.
            unsafe { self.runnable.set_kind(NonNull::from(kind).cast()) };
        }
    }

    /// Returns how this thread may access the task.
    #[inline]
    pub(super) fn access(&self) -> Access {
        let owner = self.owner.load(Ordering::Acquire);
        if owner == 0 {
            Access::Shared
        } else if owner == OwnerId::here().number() {
            Access::Local
        } else {
            Access::Remote
        }
    }

    /// Returns the number of the owner thread, or zero if the task is shared.
    pub(crate) fn home_number(&self) -> u32 {
        self.owner.load(Ordering::Relaxed)
    }

    /// Returns true if the future must not leave its thread.
    #[inline]
    pub(super) fn is_local(&self) -> bool {
        self.fixed.get() & LOCAL != 0
    }

    /// Returns the kind of allocator that the task came from.
    #[inline]
    pub(super) fn memory(&self) -> Memory {
        match self.fixed.get() & !(LOCAL | COLD) {
            memory if memory == Memory::Recycling as u8 => Memory::Recycling,
            memory if memory == Memory::System as u8 => Memory::System,
            _ => Memory::Own,
        }
    }

    /// Returns true if the memory is the default allocator's and there is no cold state.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.fixed.get() & !LOCAL == Memory::Recycling as u8
    }

    /// Returns true if this is the owner thread.
    #[inline]
    pub(crate) fn is_at_home(&self) -> bool {
        self.is_owned_by(OwnerId::here())
    }

    /// Returns true if this is the task's owner thread.
    #[inline]
    pub(super) fn is_owned_by(&self, owner: OwnerId) -> bool {
        self.owner.load(Ordering::Relaxed) == owner.number()
    }

    /// Returns true if this is the task's owner thread and the task has not ended.
    #[cfg(feature = "testing")]
    pub(crate) fn is_alive_in(&self, owner: OwnerId) -> bool {
        self.is_owned_by(owner) && !self.state.is_done()
    }

    /// Returns the parent link.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    pub(crate) unsafe fn parent_link(&self) -> &ParentLink {
        // SAFETY: rule 3, the caller's promise: the task has not left, and so the link is not null and alive.
        unsafe { &*self.kind().parent }
    }

    /// Returns the environment that the task runs in: the one it moved to, or its parent's.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    pub(super) unsafe fn env(&self) -> &Env {
        // SAFETY: rule 3, the caller's promise. The cold state is read by the holder of the runnable, from
        // inside, or on the owner thread of a task that has not moved; in all three cases no other thread
        // changes it.
        unsafe {
            match self.cold().and_then(ColdState::moved_to) {
                Some(env) => env,
                None => self.parent_link().env(),
            }
        }
    }

    /// Returns the cold state, if there is one.
    ///
    /// # Safety
    /// Rule 2.
    #[inline]
    pub(super) unsafe fn cold(&self) -> Option<&ColdState> {
        // SAFETY: `COLD` says that the kind is the first field of a cold state, which is freed with the task.
        unsafe { (self.fixed.get() & COLD != 0).then(|| self.cold_address().as_ref()) }
    }

    /// Returns the address of the cold state, if there is one; else that of the kind.
    #[inline]
    pub(super) fn cold_address(&self) -> NonNull<ColdState> {
        self.runnable.kind().cast()
    }

    /// Adds a reference.
    ///
    /// # Safety
    /// The caller has one, or the task has not left.
    pub(crate) unsafe fn add_reference(task: NonNull<Self>) {
        // SAFETY: the task is alive: the caller's promise.
        unsafe { Alive::new(task) }.counted().into_counted();
    }

    /// Asks the task to stop.
    ///
    /// # Safety
    /// The caller has a reference to the task, or the task has not left.
    pub(crate) unsafe fn ask_stop(task: NonNull<Self>) {
        // SAFETY: the task is alive: the caller's promise.
        unsafe { Alive::new(task) }.ask_stop();
    }

    /// Asks the task to stop, for a parent that the task does not wait for: it may leave meanwhile and then
    /// no longer lead to the parent link.
    ///
    /// # Safety
    /// The caller has a reference to the task. `link` is, or was, its parent link, and is alive.
    pub(crate) unsafe fn ask_stop_in(task: NonNull<Self>, link: NonNull<ParentLink>) {
        // SAFETY: the task is alive: the caller has a reference. The state has said what is to be done.
        unsafe {
            let (state, access) = (&task.as_ref().state, task.as_ref().access());
            match state.ask_stop(access) {
                Wake::Nothing => {}
                Wake::Post => Self::post(task),
                Wake::Send => Self::send_remote_wake(task, link),
            }
        }
    }

    /// Asks the task to stop, as its owner thread does: for that thread, or for one that keeps the owner
    /// thread out. A task that has left ignores it.
    ///
    /// # Safety
    /// The caller has the task's handle, and is the owner thread or keeps it out.
    pub(crate) unsafe fn ask_stop_at_home(task: NonNull<Self>) {
        // SAFETY: the task is alive: the caller has the handle.
        unsafe { Alive::new(task) }.ask_stop_as_owner();
    }

    /// Posts the task to its executor. A panic of the executor ends here: see [`ExecutorRef::post_cloned`].
    ///
    /// # Safety
    /// The state has told the caller to create the runnable.
    // Not inlined: most wakes find the task queued or running, and need none of this.
    #[inline(never)]
    pub(crate) unsafe fn post(task: NonNull<Self>) {
        // SAFETY: rule 3: the caller holds the runnable, so the task has not left, and its environment is
        // there.
        unsafe { Self::post_to(task, NonNull::from(task.as_ref().env().executor())) };
    }

    /// Posts a task that has not run yet, and so has not moved: its executor is its parent's.
    ///
    /// # Safety
    /// The state has told the caller to create the runnable, and `link` is the task's parent link.
    #[inline]
    pub(crate) unsafe fn post_first(task: NonNull<Self>, link: NonNull<ParentLink>) {
        // SAFETY: rule 3: the caller holds the runnable, so the task has not left, and its parent link is
        // alive.
        unsafe { Self::post_to(task, NonNull::from(link.as_ref().env().executor())) };
    }

    /// Posts the task to this executor, which is its own.
    ///
    /// As soon as another thread can see the runnable, the task may run to its end there and free its
    /// environment, the executor's handle included. So the runnable goes straight into the queue of the loop
    /// that this thread runs, or through a clone of the handle.
    ///
    /// # Safety
    /// The state has told the caller to create the runnable. The executor is alive until the task runs.
    #[inline]
    unsafe fn post_to(task: NonNull<Self>, executor: NonNull<ExecutorRef>) {
        // SAFETY: this thread has the only runnable, so the task has not run. The executor is alive until the
        // runnable is given away, or in the queue, which this thread empties later.
        unsafe {
            let mut runnable = Runnable::new(task.cast());
            if executor.as_ref().queues_locally() {
                match task.as_ref().queue_locally(runnable) {
                    Ok(()) => return,
                    Err(back) => runnable = back,
                }
            }
            ExecutorRef::post_cloned(executor, runnable);
        }
    }

    /// Returns the links in a list of its parent: rule 4.
    #[inline]
    pub(crate) fn links(&self) -> *mut Links {
        self.links.get().cast()
    }
}

/// The fields of the header that belong to the thread inside: rule 2.
impl Inside {
    /// Returns the cold state, if there is one.
    #[inline]
    pub(super) fn cold(&self) -> Option<&ColdState> {
        // SAFETY: rule 2: this thread is inside.
        unsafe { self.header().cold() }
    }

    /// Returns the cold state, and creates it if there is none.
    pub(super) fn make_cold(&self) -> &ColdState {
        match self.try_make_cold() {
            Some(cold) => cold,
            None => no_memory(Layout::new::<ColdState>()),
        }
    }

    /// Returns the cold state, and creates it if there is none and the allocator has memory for it.
    pub(super) fn try_make_cold(&self) -> Option<&ColdState> {
        if let Some(cold) = self.cold() {
            return Some(cold);
        }
        let header = self.header();
        // SAFETY: rules 2 and 3: this thread is inside. The cold state is new, freed with the task, and its
        // first field is the kind.
        unsafe {
            let cold = ColdState::make(header.parent_link().env().allocator(), *header.kind())?;
            header.runnable.set_kind(cold.cast());
            header.fixed.set(header.fixed.get() | COLD);
            Some(cold.as_ref())
        }
    }

    /// Makes the task shared: it is about to run on another executor.
    pub(super) fn move_out(&self) {
        let header = self.header();
        if header.access() == Access::Local {
            header.state.move_out();
            header.owner.store(0, Ordering::Release);
        }
    }

    /// Returns the reason if the task was asked to stop.
    #[inline]
    pub(super) fn requested_stop(&self) -> Option<StopReason> {
        let header = self.header();
        if !header.state.stop_asked() {
            return None;
        }
        // SAFETY: rule 3: this thread is inside.
        Some(unsafe { header.parent_link() }.stop_reason().unwrap_or(StopReason::Abandoned))
    }
}

/// Drops the handle that stays on the task's owner thread.
///
/// # Safety
/// The caller owns that handle, and is the owner thread or keeps it out.
#[inline]
pub(crate) unsafe fn drop_handle(task: NonNull<TaskHeader>) {
    // SAFETY: the handle keeps the task alive.
    if unsafe { task.as_ref() }.state.drop_handle() {
        // SAFETY: the state has said that this was the last reference; a task without its own has left and is
        // not queued.
        drop(unsafe { Runnable::new(task.cast()) });
    }
}

/// Drops a reference, and frees the task if it was the last.
///
/// # Safety
/// The caller owns one, and does not use the task afterwards.
#[inline]
pub(crate) unsafe fn drop_reference(task: NonNull<TaskHeader>) {
    // SAFETY: the caller owns a reference, and gives it up.
    drop(unsafe { TaskRef::from_counted(task) });
}

// A program may have millions of waiting tasks: this is the cost of each, beside its future.
#[cfg(all(target_pointer_width = "64", not(feature = "loom")))]
const _: () = assert!(size_of::<TaskHeader>() == 48);

impl fmt::Debug for TaskHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHeader").field("state", &self.state).finish_non_exhaustive()
    }
}
