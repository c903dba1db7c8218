//! What only some tasks need, made when it is first needed: room for what is awaited, a stop token to hand out, an executor
//! that the task moved to.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::ptr::NonNull;

use convoke_core::env::FrameAllocator;
use convoke_core::raw::Waits;
use convoke_core::raw::sync::atomic::{AtomicU32, Ordering};
use convoke_core::{Env, StopReason};

use super::spawn_site::TaskKind;
use crate::surroundings::Surroundings;
use convoke_core::raw::{contain, report_panic};

/// All of it belongs to whoever is inside the task, except `gone`, which operations that leave elsewhere count up, and what people
/// who look see: `kind`, which is not changed, and `waits`.
#[repr(C)]
pub(crate) struct ColdState {
    /// First, so that its address is ours: the task leads here, and no longer to its site.
    kind: TaskKind,
    /// Where the task waits, or waited last, while it is watched: longer than its header knows.
    pub(super) waits: Waits,
    /// In which watch that was.
    pub(super) watch: Cell<usize>,
    /// Operations that have come, less those that were freed from inside.
    operations: Cell<u32>,
    /// Operations that have left from elsewhere.
    gone: AtomicU32,
    /// The memory of the last operation, cached for the next.
    spare: Cell<Option<(NonNull<u8>, Layout)>>,
    /// The last one counts; there is another after each move. The others stay until the poll is over: the task may be using them.
    #[expect(clippy::vec_box, reason = "what is borrowed stays where it is when another is added")]
    surroundings: UnsafeCell<Vec<Box<Surroundings>>>,
    /// The environments of where the task has moved to, the last one last. The others stay until the poll is over, and for as
    /// long as there are operations, which borrow the environment that they were started in.
    #[expect(clippy::vec_box, reason = "what is borrowed stays where it is when another is added")]
    moved_to: UnsafeCell<Vec<Box<Env>>>,
}

impl ColdState {
    /// A side table, in memory of the allocator, if it has some; for a task of this kind.
    pub(super) fn make(allocator: &FrameAllocator, kind: TaskKind) -> Option<NonNull<Self>> {
        let memory = allocator.allocate(Layout::new::<Self>())?.cast::<Self>();
        // SAFETY: the memory fits and is ours.
        unsafe {
            memory.write(Self {
                kind: TaskKind { side: Some(memory), ..kind },
                waits: Waits::new(),
                watch: Cell::new(0),
                operations: Cell::new(0),
                gone: AtomicU32::new(0),
                spare: Cell::new(None),
                surroundings: UnsafeCell::new(Vec::new()),
                moved_to: UnsafeCell::new(Vec::new()),
            });
        }
        Some(memory)
    }

    /// The body is gone: lets go of all that leads to the place, or came from there.
    ///
    /// # Safety
    /// Called from inside, with the allocator of `make`; all operations have left, and nobody uses what is in here.
    pub(super) unsafe fn clear(&self, allocator: &FrameAllocator) {
        // SAFETY: the caller's; the spare room came from the same allocator.
        unsafe {
            if let Some((memory, room)) = self.spare.take() {
                allocator.deallocate(memory, room);
            }
            drop(core::mem::take(&mut *self.surroundings.get()));
            drop(core::mem::take(&mut *self.moved_to.get()));
        }
    }

    /// # Safety
    /// It came from `make` with this allocator, was cleared, and is not used any more.
    pub(super) unsafe fn free(this: NonNull<Self>, allocator: &FrameAllocator) {
        // SAFETY: the caller's.
        unsafe {
            this.drop_in_place();
            allocator.deallocate(this.cast(), Layout::new::<Self>());
        }
    }

    /// Adopts an operation: memory for at least so much, and how much it is.
    #[inline]
    pub(super) fn adopt<'a>(
        &self,
        room: Layout,
        allocator: impl FnOnce() -> &'a FrameAllocator,
    ) -> (NonNull<u8>, Layout) {
        let received = match self.spare.take() {
            Some((memory, spare)) if spare.size() >= room.size() && spare.align() >= room.align() => {
                (memory, spare)
            }
            other => {
                let allocator = allocator();
                if let Some((memory, spare)) = other {
                    // SAFETY: it came from this allocator: the task has one.
                    unsafe { allocator.deallocate(memory, spare) };
                }
                (allocator.allocate(room).unwrap_or_else(|| no_memory(room)), room)
            }
        };
        // Counted when it is in: one that found no room is not waited for.
        self.operations.set(self.operations.get() + 1);
        received
    }

    /// Frees an operation, and caches its memory.
    ///
    /// # Safety
    /// The memory came from `receive` and is not used any more.
    #[inline]
    pub(super) unsafe fn free_operation<'a>(
        &self,
        memory: NonNull<u8>,
        room: Layout,
        allocator: impl FnOnce() -> &'a FrameAllocator,
    ) {
        self.operations.set(self.operations.get() - 1);
        if let Some((memory, room)) = self.spare.replace(Some((memory, room))) {
            // SAFETY: it came from this allocator.
            unsafe { allocator().deallocate(memory, room) };
        }
    }

    /// An operation was released from elsewhere. The task may end as soon as this is said.
    pub(super) fn operation_released(&self) {
        self.gone.fetch_add(1, Ordering::Release);
    }

    /// Whether nobody is in any more.
    pub(super) fn is_empty(&self) -> bool {
        self.gone.load(Ordering::Acquire) == self.operations.get()
    }

    /// The environment to show, with a stop token of its own.
    pub(super) fn env(&self, above: &Env, asked: Option<StopReason>) -> &Env {
        let make = || self.surround(Surroundings::new(above, above.stop().deadline()));
        let surroundings = self.surroundings().unwrap_or_else(make);
        if let Some(reason) = asked {
            surroundings.request_stop(reason);
        }
        surroundings.env()
    }

    fn surroundings(&self) -> Option<&Surroundings> {
        // SAFETY: changed by `surround` alone, which adds boxes and moves none of what is in them; the reference is to that.
        unsafe { (*self.surroundings.get()).last().map(|surroundings| &**surroundings) }
    }

    fn surround(&self, surroundings: Surroundings) -> &Surroundings {
        // SAFETY: one thread is inside the task, and no reference to the vector itself is held.
        unsafe {
            let all = &mut *self.surroundings.get();
            all.push(Box::new(surroundings));
            all.last().expect("just pushed")
        }
    }

    /// The task was asked to stop: passes it on to those who have its token.
    pub(super) fn pass_on_stop(&self, reason: StopReason) {
        if let Some(surroundings) = self.surroundings() {
            surroundings.request_stop(reason);
        }
    }

    /// The environment of where the task has moved to, if it has.
    #[inline]
    pub(super) fn moved_to(&self) -> Option<&Env> {
        // SAFETY: changed by `move_to` alone, which adds boxes and moves none of what is in them; the reference is to that.
        unsafe { (*self.moved_to.get()).last().map(|env| &**env) }
    }

    /// The task runs there from now on.
    ///
    /// # Safety
    /// Called from inside the task.
    pub(super) unsafe fn move_to(&self, env: Env) {
        if let Some(surroundings) = self.surroundings() {
            self.surround(surroundings.moved_to(&env));
        }
        // SAFETY: the caller's: nobody else is here, and no reference to the vector itself is held.
        unsafe { (*self.moved_to.get()).push(Box::new(env)) };
    }
}

impl ColdState {
    /// Frees the environments of executors that the task has left, unless an operation may still borrow one.
    ///
    /// # Safety
    /// Called from inside the task, after a poll: the future borrows no environment between its polls.
    #[inline(never)]
    pub(super) unsafe fn forget_past(&self) {
        // SAFETY: the caller is inside, and no reference to the vector itself is held.
        let moves = unsafe { (*self.moved_to.get()).len() };
        if moves > 1 && self.is_empty() {
            // SAFETY: `forget_past`'s caller: nobody borrows them, and no operation is in flight.
            unsafe { self.free_past() };
        }
    }

    /// # Safety
    /// Called from inside the task, after a poll, and no operation is in flight.
    #[cold]
    unsafe fn free_past(&self) {
        // SAFETY: the caller is inside: nobody else is here. The references to the vectors end before anything is dropped.
        let past =
            unsafe { (take_past(&mut *self.surroundings.get()), take_past(&mut *self.moved_to.get())) };
        // The destructors of executors are the program's, and the task goes on.
        contain(report_panic, || drop(past));
    }
}

/// Takes all but the last.
fn take_past<T>(all: &mut Vec<Box<T>>) -> Vec<Box<T>> {
    let last = all.pop();
    core::mem::replace(all, last.into_iter().collect())
}

/// A panic that says what to do. It is the outcome of the task that needed the memory.
#[cold]
pub(super) fn no_memory(layout: Layout) -> ! {
    panic!(
        "the frame allocator has no {} bytes left for what a task awaits; give it more memory, or run fewer tasks at a time",
        layout.size()
    )
}

impl fmt::Debug for ColdState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColdState").field("operations", &self.operations.get()).finish_non_exhaustive()
    }
}
