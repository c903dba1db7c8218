//! The part of a task that does not depend on its future's type: what queues, wakers and parents know of it.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::mem::MaybeUninit;
use core::panic::Location;
use core::ptr::NonNull;

use convoke_core::raw::sync::atomic::{AtomicU32, Ordering};
use convoke_core::raw::{Header, OwnerId, ReasonCode, watching};
use convoke_core::{Env, StopReason};

use super::asked_for::AskedFor;
use super::cold::{ColdState, no_memory};
use super::inside::Inside;
use super::memory::Memory;
use super::parent_link::{Links, List, ParentLink};
use super::spawn_site::TaskKind;
use super::state::{Access, State};
use crate::hooks::HOOKS;

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
    pub(super) list: Cell<List>,
    /// The allocator of its memory, and the flags `LOCAL`, `COLD`, `ASKED_FOR`, `QUEUES_HERE` and `HOOKED`, in one byte.
    fixed: Cell<u8>,
    /// Initialised when the task is put into a list.
    links: UnsafeCell<MaybeUninit<Links>>,
}

/// The future must not leave its thread.
const LOCAL: u8 = 1 << 7;
/// There is a cold state, and the kind is the copy in it.
const COLD: u8 = 1 << 6;
/// There is a word for the reason of a stop behind the header: [`AskedFor`].
const ASKED_FOR: u8 = 1 << 5;
/// The task has an owner thread, and its executor puts it into the queue of the run loop of that thread:
/// `Executor::QUEUES_LOCALLY`.
const QUEUES_HERE: u8 = 1 << 4;
/// There are hooks in the environment that the task is spawned in: see [`HOOKS`].
const HOOKED: u8 = 1 << 3;
/// The bits of the allocator.
const MEMORY: u8 = HOOKED - 1;
/// The bits of a task that came from the default, recycling allocator.
const RECYCLING: u8 = 0;
/// The bits of a task that came from the system's allocator.
const SYSTEM: u8 = 1;
/// The bits of a task that came from an allocator of its own.
const OWN: u8 = 2;

/// The part of `fixed` that tasks under one parent link begin with: the allocator, `HOOKED` and `QUEUES_HERE`.
#[derive(Clone, Copy)]
pub(super) struct Inherited(u8);

impl Inherited {
    /// Returns the part of tasks in this environment, with this owner thread.
    pub(super) fn of(env: &Env, owner: OwnerId) -> Self {
        let queues_here = owner != OwnerId::NONE && env.executor().queues_locally();
        // Hooks that are in an environment are counted.
        let hooked = watching::is_hooked() && env.local(&HOOKS).is_some();
        let flags = if queues_here { QUEUES_HERE } else { 0 } | if hooked { HOOKED } else { 0 };
        let memory = match Memory::of(env.allocator()) {
            Memory::Recycling => RECYCLING,
            Memory::System => SYSTEM,
            Memory::Own => OWN,
        };
        Self(memory | flags)
    }

    /// Returns the kind of the allocator.
    #[inline]
    pub(super) fn memory(self) -> Memory {
        match self.0 & MEMORY {
            RECYCLING => Memory::Recycling,
            SYSTEM => Memory::System,
            _ => Memory::Own,
        }
    }
}

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
    /// Creates the header of a queued task. The caller posts the runnable, whose kind is a [`TaskKind`].
    #[inline]
    pub(super) fn new(
        runnable: Header,
        state: State,
        owner: OwnerId,
        inherited: Inherited,
        local: bool,
        asked_for: bool,
    ) -> Self {
        let flags = if local { LOCAL } else { 0 } | if asked_for { ASKED_FOR } else { 0 };
        Self {
            runnable,
            state,
            owner: AtomicU32::new(owner.number()),
            stage: Cell::new(Stage::Future),
            stopped: Cell::new(false),
            list: Cell::new(List::Nowhere),
            fixed: Cell::new(inherited.0 | flags),
            links: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Leads to a kind of another parent link. The memory stays that of the first one.
    ///
    /// # Safety
    /// Rule 2: the task was not posted, and this thread has it to itself. The kind is one of `link`, and both
    /// are alive until the task has left: rule 3.
    pub(super) unsafe fn set_kind_and_owner(&self, kind: NonNull<TaskKind>, link: &ParentLink) {
        // SAFETY: the kind is alive until it is replaced, and the caller holds the runnable: rule 2.
        unsafe { self.runnable.set_kind(kind.cast()) };
        self.owner.store(link.owner_id().number(), Ordering::Relaxed);
        const OF_LINK: u8 = QUEUES_HERE | HOOKED;
        self.fixed.set(self.fixed.get() & !OF_LINK | link.inherited().0 & OF_LINK);
    }

    /// Replaces the kind by one that outlives the parent, after the task has left: rule 6.
    ///
    /// # Safety
    /// Called by the thread that lets the task leave, at the time that rule 6 names.
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

    /// Returns how the thread that is inside may access the task: it is the owner thread, if there is one.
    #[inline]
    pub(super) fn access_inside(&self) -> Access {
        if self.owner.load(Ordering::Relaxed) == 0 { Access::Shared } else { Access::Local }
    }

    /// Returns true if the task has an owner thread, and its executor puts it into the queue of the run loop of
    /// that thread. Read as rule 2 allows, or on the owner thread of a task that has not ended.
    #[inline]
    pub(super) fn queues_here(&self) -> bool {
        self.fixed.get() & QUEUES_HERE != 0
    }

    /// Returns true if there are hooks in the environment that the task is spawned in: rule 2.
    #[inline]
    pub(super) fn is_hooked(&self) -> bool {
        self.fixed.get() & HOOKED != 0
    }

    /// Returns the number of the owner thread, or zero if the task is shared.
    pub(super) fn owner_number(&self) -> u32 {
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
        Inherited(self.fixed.get()).memory()
    }

    /// Returns true if the memory is the default allocator's and there is no cold state.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.fixed.get() & (COLD | MEMORY) == RECYCLING
    }

    /// Returns true if this is the owner thread.
    #[inline]
    pub(super) fn is_on_owner_thread(&self) -> bool {
        self.is_owned_by(OwnerId::here())
    }

    /// Returns true if this is the task's owner thread.
    #[inline]
    pub(super) fn is_owned_by(&self, owner: OwnerId) -> bool {
        self.owner.load(Ordering::Relaxed) == owner.number()
    }

    /// Returns true if this is the task's owner thread and the task has not ended.
    #[cfg(feature = "testing")]
    pub(super) fn is_alive_in(&self, owner: OwnerId) -> bool {
        self.is_owned_by(owner) && !self.state.is_done()
    }

    /// Returns the cold state, if there is one.
    ///
    /// # Safety
    /// Rule 2: no other thread is inside. A thread that only counts an operation as released (rule 2 of
    /// `ColdState`) may be any.
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

    /// Returns the links in a list of its parent: rule 4.
    #[inline]
    pub(super) fn links(&self) -> *mut Links {
        self.links.get().cast()
    }
}

/// A task that has not left, for a thread that rule 3 or 5 allows to read its kind.
#[derive(Clone, Copy)]
pub(super) struct NotLeft<'a>(&'a TaskHeader);

impl<'a> NotLeft<'a> {
    /// Takes a task.
    ///
    /// # Safety
    /// Rule 3 or 5 allows this thread to read the kind, for as long as the result is used.
    #[inline]
    pub(super) unsafe fn new(task: &'a TaskHeader) -> Self {
        Self(task)
    }

    /// Returns the kind. Another thread may have replaced it a moment ago, from inside: hence `Acquire` in
    /// `Header`.
    #[inline]
    pub(super) fn kind(self) -> &'a TaskKind {
        // SAFETY: rules 3, 5 and 6: the kind is alive for the threads that they allow to read it. Only kinds
        // of tasks are stored in a task's header.
        unsafe { self.0.runnable.kind().cast().as_ref() }
    }

    /// Returns the parent link.
    #[inline]
    pub(super) fn parent_link(self) -> &'a ParentLink {
        // SAFETY: rule 3: the task has not left, and so the link is not null and alive.
        unsafe { &*self.kind().parent }
    }

    /// Returns the environment that the task runs in: the one it moved to, or its parent's.
    ///
    /// # Safety
    /// Rule 2: no other thread is inside. This thread is inside, holds the runnable, or is the owner thread.
    #[inline]
    pub(super) unsafe fn env(self) -> &'a Env {
        // SAFETY: rule 2: the cold state changes from inside only, and no other thread is inside.
        match unsafe { self.0.cold() }.and_then(ColdState::moved_to) {
            Some(env) => env,
            None => self.parent_link().env(),
        }
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
    #[inline]
    pub(super) fn try_make_cold(&self) -> Option<&ColdState> {
        self.cold().or_else(|| self.create_cold())
    }

    #[cold]
    #[inline(never)]
    fn create_cold(&self) -> Option<&ColdState> {
        let header = self.header();
        let allocator = self.parent_link().env().allocator();
        let cold = ColdState::make(allocator, *self.not_left().kind())?;
        if let Some(first) = self.cold() {
            // The allocator is code of the program, and has used the task meanwhile.
            // SAFETY: `make` has just returned it, from this allocator, and its address was not stored: `set_kind` comes below.
            // A new one has nothing to clear.
            unsafe { ColdState::free(cold, allocator) };
            return Some(first);
        }
        // SAFETY: rule 2: this thread is inside. The cold state is new and freed with the task, and its first
        // field is a kind.
        unsafe { header.runnable.set_kind(cold.cast()) };
        header.fixed.set(header.fixed.get() | COLD);
        self.cold()
    }

    /// Returns the task as one that has not left.
    #[inline]
    pub(super) fn not_left(&self) -> NotLeft<'_> {
        // SAFETY: rule 3: this thread is inside.
        unsafe { NotLeft::new(self.header()) }
    }

    /// Returns the parent link.
    #[inline]
    pub(crate) fn parent_link(&self) -> &ParentLink {
        self.not_left().parent_link()
    }

    /// Returns the line that spawned the task.
    #[inline]
    pub(crate) fn location(&self) -> &'static Location<'static> {
        self.not_left().kind().location
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
        Some(self.stop_reason_of_parent())
    }

    #[cold]
    #[inline(never)]
    fn stop_reason_of_parent(&self) -> StopReason {
        let own = self.asked_for().and_then(AskedFor::code).map(ReasonCode::reason);
        own.or_else(|| self.parent_link().stop_reason()).unwrap_or(StopReason::Abandoned)
    }

    /// Returns the word for the reason of a stop, if the task has one: a task with a handle does.
    fn asked_for(&self) -> Option<&AskedFor> {
        let header = self.header();
        if header.fixed.get() & ASKED_FOR == 0 {
            return None;
        }
        // SAFETY: the flag says that the word is there, in the memory of the task: `TaskHeader::new` was told
        // so by `Ending::ASKED_FOR`.
        Some(unsafe { AskedFor::behind(NonNull::from(header)).as_ref() })
    }

    /// Stores why the task ends as stopped, for its handle. Nothing, if it stops by itself.
    #[cold]
    pub(super) fn ends_stopped(&self) {
        if let (Some(word), Some(reason)) = (self.asked_for(), self.requested_stop()) {
            word.set(reason);
        }
    }
}

// A program may have millions of waiting tasks: this is the cost of each, beside its future.
#[cfg(all(target_pointer_width = "64", not(feature = "loom")))]
const _: () = assert!(size_of::<TaskHeader>() == 48);

impl fmt::Debug for TaskHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHeader").field("state", &self.state).finish_non_exhaustive()
    }
}
