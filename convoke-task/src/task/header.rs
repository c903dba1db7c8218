//! The part of a task that does not depend on its future: what queues, wakers and parents know of it.
//!
//! The rules of who may touch which field:
//! 1. `state` and `home` are for everybody who refers to the task. They say who may do what.
//! 2. Whoever holds the runnable, or is inside (`RUNNING`), has `runnable`, `stage`, `stopped`, `fixed` and the body to himself.
//! 3. The place outlives the task's stay, and so does its kind (`TaskKind`): they may be looked at from inside, by whoever holds
//!    the runnable, and by whoever has a letter to send (`Wake::Send`), which the task waits for; not by others. A parent that asks
//!    it to stop is no such one (`Known::ToOthers`): it has to know the place.
//! 4. `links` and `list` belong to the parent, under its lock.
//! 5. People who look at a task in a list of its parent's see its kind, and where it waits. The kind is changed once, from
//!    inside, to that in the side table (`SIDE`), which is freed with the task. Where it waits is written from inside into the
//!    link of the runnable, which is free then; so it is known until the task is queued again. That of a task which is watched
//!    is kept in the side table.
//! 6. A task that has left leads to no site: its kind is one that is there for ever, or that in its side table. It is set after the
//!    parent was told, and before the task's own reference is given up or it waits for a letter of the parent's: who frees the
//!    task reads it, and so does who opens that letter.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::mem::MaybeUninit;
use core::panic::Location;
use core::ptr::NonNull;

use convoke_core::raw::sync::atomic::{AtomicU32, Ordering};
use convoke_core::raw::{Header, OwnerId, Runnable};
use convoke_core::{Env, ExecutorRef, StopReason};

use super::cold::{ColdState, no_memory};
use super::memory::Memory;
use super::parent_link::{Links, List, ParentLink};
use super::spawn_site::{Sites, TaskKind};
use super::state::{Access, State, Wake};

/// See the head of this file.
#[repr(C)]
pub(crate) struct TaskHeader {
    /// First, so that its address is ours.
    pub(super) runnable: Header,
    pub(super) state: State,
    /// The number of the home it lives in, or zero if it is shared.
    home: AtomicU32,
    pub(super) stage: Cell<Stage>,
    /// Whether something in its outermost frame has ended by the stopped door.
    pub(super) stopped: Cell<bool>,
    /// Which list of its parent's it is in: rule 4.
    pub(crate) list: Cell<List>,
    /// What hardly changes, in one byte: in whose memory it lies, whether it must not leave its thread, and whether it has a side
    /// table.
    fixed: Cell<u8>,
    /// Made when it is put into a list.
    links: UnsafeCell<MaybeUninit<Links>>,
}

const LOCAL: u8 = 1 << 7;
const SIDE: u8 = 1 << 6;

/// What is in the body's room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The future.
    Future,
    /// The outcome; the task waits for its operations.
    Outcome,
    /// Nothing, or the outcome, for a handle: the parent was told.
    Delivered,
    /// The outcome, and the task has been told to leave.
    Leaving,
    /// As `Delivered`, and the task has been told to leave.
    LeavingDelivered,
}

// SAFETY: the rules at the head of this file.
unsafe impl Sync for TaskHeader {}

impl TaskHeader {
    /// A task that is queued, in this memory: whoever makes it posts its runnable.
    ///
    /// # Safety
    /// The kind is that of a site in the task's place, whose home this is.
    #[inline]
    pub(super) unsafe fn new(
        kind: NonNull<TaskKind>,
        state: State,
        home: OwnerId,
        memory: Memory,
        local: bool,
    ) -> Self {
        Self {
            // SAFETY: the caller's; rules 3 and 6.
            runnable: unsafe { Header::of_kind(kind.cast()) },
            state,
            home: AtomicU32::new(home.number()),
            stage: Cell::new(Stage::Future),
            stopped: Cell::new(false),
            list: Cell::new(List::Running),
            fixed: Cell::new(memory as u8 | if local { LOCAL } else { 0 }),
            links: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Asks a task that nobody knows yet to stop, from its beginning.
    ///
    /// # Safety
    /// The task is there.
    pub(crate) unsafe fn stop_from_the_beginning(task: NonNull<Self>) {
        // SAFETY: the caller's. It is queued, and so there is nothing to do about it.
        let _ = unsafe { task.as_ref() }.state.ask_stop(Access::Local);
    }

    /// Puts a task that nobody knows yet into another place.
    ///
    /// # Safety
    /// The place outlives the task's stay.
    pub(crate) unsafe fn set_place(task: NonNull<Self>, place: NonNull<ParentLink>) {
        // SAFETY: the caller's: nobody else is here.
        unsafe {
            let (this, kind) = (&mut *task.as_ptr(), *task.as_ref().kind());
            let site = Sites::find(place.as_ref(), kind.work, kind.location);
            this.runnable.set_kind(site.expect("there is room for the first").cast());
            this.home = AtomicU32::new(place.as_ref().home().number());
        }
    }

    /// The kind. Another thread may have published it a moment ago, from inside the task: hence `Acquire`.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    unsafe fn kind(&self) -> &TaskKind {
        // SAFETY: rule 3, which the caller keeps: the kind is there. Only kinds of tasks are stored in a task's header.
        unsafe { self.runnable.kind().cast().as_ref() }
    }

    /// Where the task was started.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    pub(crate) unsafe fn location(&self) -> &'static Location<'static> {
        // SAFETY: the caller's.
        unsafe { self.kind() }.location
    }

    /// The task has left its place: rule 6. From here on it is of this kind.
    ///
    /// # Safety
    /// Called once, as the rule says.
    #[inline]
    pub(super) unsafe fn set_left(&self, kind: &'static TaskKind) {
        if self.fixed.get() & SIDE == 0 {
            // SAFETY: it lives for ever, and nothing is queued.
            unsafe { self.runnable.set_kind(NonNull::from(kind).cast()) };
        }
    }

    /// From where this thread touches the task.
    #[inline]
    pub(super) fn from(&self) -> Access {
        let home = self.home.load(Ordering::Acquire);
        if home == 0 {
            Access::Shared
        } else if home == OwnerId::here().number() {
            Access::Local
        } else {
            Access::Remote
        }
    }

    /// The number of the home it lives in, or zero if it is shared; for people who look.
    pub(crate) fn home_number(&self) -> u32 {
        self.home.load(Ordering::Relaxed)
    }

    /// Whether it must not leave its thread.
    #[inline]
    pub(super) fn is_local(&self) -> bool {
        self.fixed.get() & LOCAL != 0
    }

    /// In whose memory it lies.
    #[inline]
    pub(super) fn memory(&self) -> Memory {
        match self.fixed.get() & !(LOCAL | SIDE) {
            memory if memory == Memory::Recycling as u8 => Memory::Recycling,
            memory if memory == Memory::System as u8 => Memory::System,
            _ => Memory::Own,
        }
    }

    /// Whether it lies in the usual memory, and has no side table.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.fixed.get() & !LOCAL == Memory::Recycling as u8
    }

    /// Whether this thread is at its home.
    #[inline]
    pub(crate) fn is_at_home(&self) -> bool {
        self.lives_in(OwnerId::here())
    }

    /// Whether it lives there.
    #[inline]
    pub(super) fn lives_in(&self, home: OwnerId) -> bool {
        self.home.load(Ordering::Relaxed) == home.number()
    }

    /// Whether it lives there, and has not ended.
    #[cfg(feature = "testing")]
    pub(crate) fn is_alive_in(&self, home: OwnerId) -> bool {
        self.lives_in(home) && !self.state.is_done()
    }

    /// What the task hangs under.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    pub(crate) unsafe fn place(&self) -> &ParentLink {
        // SAFETY: the caller's.
        unsafe { &*self.kind().place }
    }

    /// The environment it runs in.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    pub(super) unsafe fn env(&self) -> &Env {
        // SAFETY: rule 2 for the side: who may look at the place holds the runnable, is inside, or finds a task at home,
        // which has not moved.
        unsafe {
            match self.side().and_then(ColdState::moved_to) {
                Some(env) => env,
                None => self.place().env(),
            }
        }
    }

    /// The side table, if there is one.
    ///
    /// # Safety
    /// Rule 2.
    #[inline]
    pub(super) unsafe fn side(&self) -> Option<&ColdState> {
        // SAFETY: the bit says that the kind lies in one, which has it first; it is freed with the task.
        unsafe { (self.fixed.get() & SIDE != 0).then(|| self.side_address().as_ref()) }
    }

    /// # Safety
    /// Rule 2, and there is a side table.
    #[inline]
    pub(super) unsafe fn side_address(&self) -> NonNull<ColdState> {
        self.runnable.kind().cast()
    }

    /// The side table, made now if there is none.
    ///
    /// # Safety
    /// Rule 2.
    pub(super) unsafe fn make_side(&self) -> &ColdState {
        // SAFETY: the caller's.
        match unsafe { self.try_make_side() } {
            Some(side) => side,
            None => no_memory(Layout::new::<ColdState>()),
        }
    }

    /// The same, if there is memory for it.
    ///
    /// # Safety
    /// Rule 2.
    pub(super) unsafe fn try_make_side(&self) -> Option<&ColdState> {
        // SAFETY: the caller's.
        if let Some(side) = unsafe { self.side() } {
            return Some(side);
        }
        // SAFETY: rule 3, from rule 2. It is just made, freed with the task, and has the kind first.
        unsafe {
            let side = ColdState::make(self.place().env().allocator(), *self.kind())?;
            self.runnable.set_kind(side.cast());
            self.fixed.set(self.fixed.get() | SIDE);
            Some(side.as_ref())
        }
    }

    /// Wakes the task.
    ///
    /// # Safety
    /// The caller has a reference to the task, or the task has not left.
    #[inline]
    pub(crate) unsafe fn wake(task: NonNull<Self>) {
        // SAFETY: the caller's; it does as it is told.
        unsafe {
            let (state, from) = (&task.as_ref().state, task.as_ref().from());
            Self::act(task, state.wake(from));
        }
    }

    /// One more reference.
    ///
    /// # Safety
    /// The caller has one, or the task has not left.
    pub(crate) unsafe fn add_reference(task: NonNull<Self>) {
        // SAFETY: the caller's.
        let this = unsafe { task.as_ref() };
        this.state.add_reference(this.from());
    }

    /// Asks the task to stop.
    ///
    /// # Safety
    /// The caller has a reference to the task, or the task has not left.
    pub(crate) unsafe fn ask_stop(task: NonNull<Self>) {
        // SAFETY: as in `wake`.
        unsafe {
            let (state, from) = (&task.as_ref().state, task.as_ref().from());
            Self::act(task, state.ask_stop(from));
        }
    }

    /// The same by a parent, for whom the task does not wait: it may leave its place meanwhile, and does not say then what that was.
    ///
    /// # Safety
    /// The caller has a reference to the task; this was its place, and is there.
    pub(crate) unsafe fn ask_stop_in(task: NonNull<Self>, place: NonNull<ParentLink>) {
        // SAFETY: as in `wake`.
        unsafe {
            let (state, from) = (&task.as_ref().state, task.as_ref().from());
            match state.ask_stop(from) {
                Wake::Nothing => {}
                Wake::Post => Self::post(task),
                Wake::Send => Self::send_in(task, place),
            }
        }
    }

    /// The same where the caller is at the task's home, or on its thread with all others kept out. A task that has left does not
    /// hear of it.
    ///
    /// # Safety
    /// As above, and the caller has the task's handle.
    pub(crate) unsafe fn ask_stop_at_home(task: NonNull<Self>) {
        // SAFETY: as in `wake`: a task that is not done has not left.
        unsafe { Self::act(task, task.as_ref().state.ask_stop(Access::Local)) };
    }

    /// # Safety
    /// The state has said that it is for the caller to do this.
    #[inline]
    pub(super) unsafe fn act(task: NonNull<Self>, wake: Wake) {
        match wake {
            Wake::Nothing => {}
            // SAFETY: the caller's: the runnable is ours to make.
            Wake::Post => unsafe { Self::post(task) },
            // SAFETY: the caller's: the letter is ours to send.
            Wake::Send => unsafe { Self::send(task) },
        }
    }

    /// Queues the task on its executor. A panic of the executor ends here: see [`ExecutorRef::post_cloned`].
    ///
    /// # Safety
    /// The state has told the caller to make the runnable.
    // Not inlined: who wakes a task that is queued or running already, or lets it wait, has no use for it.
    #[inline(never)]
    pub(crate) unsafe fn post(task: NonNull<Self>) {
        // SAFETY: rule 3: the caller holds the runnable, so the task has not left, and its environment is there.
        unsafe { Self::post_to(task, NonNull::from(task.as_ref().env().executor())) };
    }

    /// Queues a task that has not run yet, and so has not moved: its executor is that of its place.
    ///
    /// # Safety
    /// The state has told the caller to make the runnable, and this is the task's place.
    #[inline]
    pub(crate) unsafe fn post_first(task: NonNull<Self>, place: NonNull<ParentLink>) {
        // SAFETY: rule 3: the caller holds the runnable, so the task has not left, and its place is there.
        unsafe { Self::post_to(task, NonNull::from(place.as_ref().env().executor())) };
    }

    /// Queues the task on this executor, which is its own.
    ///
    /// As soon as the runnable is visible to another thread the task may run to its end there and free its environment, the
    /// executor's handle included. So the runnable goes straight into the queue of the loop that this thread runs, or
    /// through a clone of the handle.
    ///
    /// # Safety
    /// The state has told the caller to make the runnable. The executor is there until the task runs.
    #[inline]
    unsafe fn post_to(task: NonNull<Self>, executor: NonNull<ExecutorRef>) {
        // SAFETY: nobody else has the runnable, so the task has not run, and the executor is there until it is given away, or in the
        // queue, which this thread empties later.
        unsafe {
            let mut runnable = Runnable::new(task.cast());
            if executor.as_ref().queues_at_home() {
                match task.as_ref().queue_at_home(runnable) {
                    Ok(()) => return,
                    Err(back) => runnable = back,
                }
            }
            ExecutorRef::post_cloned(executor, runnable);
        }
    }

    /// Its links in a list of its parent's: rule 4.
    #[inline]
    pub(crate) fn links(&self) -> *mut Links {
        self.links.get().cast()
    }

    /// From here on the task is shared: it is about to run on another executor.
    ///
    /// # Safety
    /// Called from inside.
    pub(super) unsafe fn move_out(&self) {
        if self.from() == Access::Local {
            self.state.move_out();
            self.home.store(0, Ordering::Release);
        }
    }

    /// Why it was asked to stop, if it was.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    pub(super) unsafe fn stop_reason(&self) -> Option<StopReason> {
        if !self.state.stop_asked() {
            return None;
        }
        // SAFETY: the caller's.
        Some(unsafe { self.place() }.stop_reason().unwrap_or(StopReason::Abandoned))
    }
}

/// Gives up the handle that does not leave the task's home.
///
/// # Safety
/// The caller has it, and is on its thread.
#[inline]
pub(crate) unsafe fn drop_handle(task: NonNull<TaskHeader>) {
    // SAFETY: the caller's.
    if unsafe { task.as_ref() }.state.drop_handle() {
        // SAFETY: as in `drop_reference`.
        drop(unsafe { Runnable::new(task.cast()) });
    }
}

/// Gives up a reference.
///
/// # Safety
/// The caller has one.
#[inline]
pub(crate) unsafe fn drop_reference(task: NonNull<TaskHeader>) {
    // SAFETY: the caller's.
    let header = unsafe { task.as_ref() };
    if header.state.drop_reference(header.from()) {
        // The one function that knows its type frees it: see `cell::call`.
        // SAFETY: nobody else refers to it, and nothing of it is queued: it has left.
        drop(unsafe { Runnable::new(task.cast()) });
    }
}

// Tasks that wait are many: this is the price of each, beside its future.
#[cfg(all(target_pointer_width = "64", not(feature = "loom")))]
const _: () = assert!(size_of::<TaskHeader>() == 48);

impl fmt::Debug for TaskHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHeader").field("state", &self.state).finish_non_exhaustive()
    }
}
