//! The cold state of a task: what only some tasks need, created on first use. Adopted operations, a stop
//! token to hand out, and the executors that the task moved to.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::ptr::NonNull;

use convoke_core::env::FrameAllocator;
use convoke_core::raw::{FrameBox, WaitLocation};
use convoke_core::{Env, StopReason};

use super::in_flight::InFlight;
use super::observed::ObserverSlot;
use super::spawn_site::TaskKind;
use super::stop_walk::StopListeners;
use crate::surroundings::Surroundings;
use convoke_core::raw::{contain, report_panic};

/// The cold state of a task. The rules of which thread may touch which field:
/// 1. Every field belongs to the thread inside the task, and only that thread is given a `&ColdState` to use,
///    except:
/// 2. of `in_flight`, the count of released operations is atomic: operations that end on another thread count it
///    up;
/// 3. `kind`, which does not change, and `waits`, which is atomic, may be read by inspectors: rule 5 of the
///    header;
/// 4. `listeners` has a lock, and may be used by every thread that keeps the task's memory alive.
#[repr(C)]
pub(crate) struct ColdState {
    /// First, so that a pointer to the kind is a pointer to the cold state: the task leads here, and no
    /// longer to its spawn site.
    kind: TaskKind,
    /// Where the task waits, or waited last, while it is watched: longer than the header remembers.
    pub(super) waits: WaitLocation,
    /// The watch in which that was recorded.
    pub(super) watch: Cell<usize>,
    /// The operations that the task waits for.
    in_flight: InFlight,
    /// The number of futures that must not be dropped yet, behind foreign combinators.
    pub(super) under_way: Cell<u32>,
    /// The scopes that hear of a stop of the task at the time of the request.
    pub(super) listeners: StopListeners,
    /// The observer of the task, if hooks have returned one.
    pub(super) observer: ObserverSlot,
    /// The memory of the last operation, cached for the next one.
    spare: Cell<Option<(NonNull<u8>, Layout)>>,
    /// Environments with the task's stop token. The last one is current; another is added after each move.
    /// The others stay until the poll is over: the task may be using them.
    surroundings: Stack<Surroundings>,
    /// The environments of the executors that the task moved to, the current one last. The others stay until
    /// the poll is over, and while there are operations, which borrow the environment that they were started
    /// in.
    moved_to: Stack<Env>,
}

impl ColdState {
    /// Creates the cold state of a task of this kind. Returns `None` if the allocator has no memory.
    pub(super) fn make(allocator: &FrameAllocator, kind: TaskKind) -> Option<NonNull<Self>> {
        let memory = allocator.allocate(Layout::new::<Self>())?.cast::<Self>();
        // SAFETY: the memory has the layout of `Self`, and nothing else uses it.
        unsafe {
            memory.write(Self {
                kind: TaskKind { cold: Some(memory), ..kind },
                waits: WaitLocation::new(),
                watch: Cell::new(0),
                in_flight: InFlight::new(),
                under_way: Cell::new(0),
                listeners: StopListeners::new(),
                observer: ObserverSlot::default(),
                spare: Cell::new(None),
                surroundings: Stack::new(),
                moved_to: Stack::new(),
            });
        }
        Some(memory)
    }

    /// Drops everything that leads to the parent link or came from there, after the future is gone.
    ///
    /// # Safety
    /// Called from inside, with the allocator of `make`. All operations have been released, and nothing in
    /// here is borrowed.
    pub(super) unsafe fn clear(&self, allocator: &FrameAllocator) {
        Self::free_memory(self.spare.take(), || allocator);
        drop((Past(self.surroundings.with(Option::take)), Past(self.moved_to.with(Option::take))));
    }

    /// Frees memory that was cached for the next operation.
    #[inline]
    fn free_memory<'a>(spare: Option<(NonNull<u8>, Layout)>, allocator: impl FnOnce() -> &'a FrameAllocator) {
        if let Some((memory, layout)) = spare {
            // SAFETY: `adopt` got the memory from this allocator with this layout: a task has one allocator. It
            // was released, and is not cached any more.
            unsafe { allocator().deallocate(memory, layout) };
        }
    }

    /// Frees the cold state.
    ///
    /// # Safety
    /// It came from `make` with this allocator, was cleared, and is not used any more.
    pub(super) unsafe fn free(this: NonNull<Self>, allocator: &FrameAllocator) {
        // SAFETY: nothing uses it any more, and `make` allocated it from this allocator.
        unsafe {
            this.drop_in_place();
            allocator.deallocate(this.cast(), Layout::new::<Self>());
        }
    }

    /// Adopts an operation: returns memory of at least this layout, and the layout that it has.
    #[inline]
    pub(super) fn adopt<'a>(
        &self,
        layout: Layout,
        allocator: impl FnOnce() -> &'a FrameAllocator,
    ) -> (NonNull<u8>, Layout) {
        let received = match self.spare.take() {
            Some((memory, spare)) if spare.size() >= layout.size() && spare.align() >= layout.align() => {
                (memory, spare)
            }
            other => {
                let allocator = allocator();
                Self::free_memory(other, || allocator);
                (allocator.allocate(layout).unwrap_or_else(|| no_memory(layout)), layout)
            }
        };
        // Counted last: an operation that got no memory is not waited for.
        self.in_flight.adopted();
        received
    }

    /// Frees the memory of an operation from inside, and caches it.
    ///
    /// # Safety
    /// The memory came from `adopt` and is not used any more.
    #[inline]
    pub(super) unsafe fn free_operation<'a>(
        &self,
        memory: NonNull<u8>,
        layout: Layout,
        allocator: impl FnOnce() -> &'a FrameAllocator,
    ) {
        self.in_flight.freed();
        Self::free_memory(self.spare.replace(Some((memory, layout))), allocator);
    }

    /// Counts an operation as released, on any thread. The task may end as soon as this is counted.
    pub(super) fn operation_released(&self) {
        self.in_flight.released();
    }

    /// Returns true if no operation is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.count() == 0
    }

    /// Returns the environment to show to the program, with a stop token of the task's own.
    pub(super) fn env(&self, above: &Env, asked: Option<StopReason>) -> &Env {
        let make = || {
            let new = Surroundings::new(above, above.stop().deadline());
            self.surroundings.push_first(above.allocator(), new)
        };
        let surroundings = self.surroundings.last().unwrap_or_else(make);
        if let Some(reason) = asked {
            surroundings.request_stop(reason);
        }
        surroundings.env()
    }

    /// Passes a stop request on to the holders of the task's stop token.
    pub(super) fn pass_on_stop(&self, reason: StopReason) {
        if let Some(surroundings) = self.surroundings.last() {
            surroundings.request_stop(reason);
        }
    }

    /// Returns the environment that the task has moved to, if it has.
    #[inline]
    pub(super) fn moved_to(&self) -> Option<&Env> {
        self.moved_to.last()
    }

    /// Makes this the environment that the task runs in.
    pub(super) fn move_to(&self, env: Env) {
        if let Some(surroundings) = self.surroundings.last() {
            self.surroundings.push(env.allocator(), surroundings.moved_to(&env));
        }
        let allocator = env.allocator().clone();
        self.moved_to.push(&allocator, env);
    }

    /// Frees the environments of executors that the task has left, unless an operation may still borrow one.
    ///
    /// # Safety
    /// Called from inside the task, after a poll: the future borrows no environment between its polls.
    #[inline(never)]
    pub(super) unsafe fn forget_past(&self) {
        if self.moved_to.has_past() && self.is_empty() {
            // `is_empty` says that no operation borrows one of them.
            drop_past((self.surroundings.with(take_past), self.moved_to.with(take_past)));
        }
    }
}

/// Values of which the last is current. The others stay in place until they are taken, because they may be
/// borrowed. No reference to the list itself outlives a method.
struct Stack<T>(UnsafeCell<Option<FrameBox<Level<T>>>>);

/// A value, and those before it.
struct Level<T> {
    value: T,
    past: Option<FrameBox<Level<T>>>,
}

impl<T> Stack<T> {
    const fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Calls `f` with the newest level.
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Option<FrameBox<Level<T>>>) -> R) -> R {
        // SAFETY: the type is not `Sync`, and `f`, which is always one of this file, does not come back here:
        // so this is the only reference to the list.
        f(unsafe { &mut *self.0.get() })
    }

    /// Returns the current value.
    #[inline]
    fn last(&self) -> Option<&T> {
        let last = self.with(|newest| newest.as_ref().map(FrameBox::pointer));
        // SAFETY: a value stays where it is until `clear` or `forget_past` takes it, and their contracts say
        // that none is borrowed.
        last.map(|last| unsafe { &(*last.as_ptr()).value })
    }

    /// Makes this the current value, in memory of this allocator.
    fn push(&self, allocator: &FrameAllocator, value: T) -> &T {
        let mut level = FrameBox::new_in(allocator.clone(), Level { value, past: None });
        self.with(|newest| {
            level.past = newest.take();
            *newest = Some(level);
        });
        self.last().expect("a value was just pushed")
    }

    /// Makes this the current value, in memory of this allocator, unless that has set one: it is code of the program, and
    /// may use the task.
    fn push_first(&self, allocator: &FrameAllocator, value: T) -> &T {
        let level = FrameBox::new_in(allocator.clone(), Level { value, past: None });
        let unused = self.with(|newest| match newest {
            Some(_) => Some(level),
            None => {
                *newest = Some(level);
                None
            }
        });
        drop(unused);
        self.last().expect("there is a value")
    }

    /// Returns true if there are values that are not current any more.
    fn has_past(&self) -> bool {
        // Through the pointer: the current value may be borrowed.
        let newest = self.with(|newest| newest.as_ref().map(FrameBox::pointer));
        // SAFETY: a level stays where it is until `clear` or `forget_past` takes it, as in `last`. Rule 1 of the
        // cold state: only the thread inside the task uses the list, and `with` has returned.
        newest.is_some_and(|newest| unsafe { (*newest.as_ptr()).past.is_some() })
    }
}

/// Takes all values but the current one.
fn take_past<T>(newest: &mut Option<FrameBox<Level<T>>>) -> Past<T> {
    Past(newest.as_mut().and_then(|newest| newest.past.take()))
}

/// Values that are not current any more. Dropped in a loop: there may be more of them than the stack is deep.
struct Past<T>(Option<FrameBox<Level<T>>>);

impl<T> Drop for Past<T> {
    fn drop(&mut self) {
        while let Some(mut level) = self.0.take() {
            self.0 = level.past.take();
        }
    }
}

/// Drops environments that the task has left.
#[cold]
fn drop_past(past: (Past<Surroundings>, Past<Env>)) {
    // The destructor of an executor is code of the program, and the task goes on if it panics.
    contain(report_panic, || drop(past));
}

/// Panics for lack of memory. The panic becomes the outcome of the task that needed the memory.
#[cold]
pub(super) fn no_memory(layout: Layout) -> ! {
    panic!(
        "the frame allocator has no {} bytes left for an operation that a task awaits; give it more memory, or run fewer tasks at a time",
        layout.size()
    )
}

impl fmt::Debug for ColdState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColdState").field("operations", &self.in_flight.count()).finish_non_exhaustive()
    }
}
