//! The trampoline of boxed senders: nested ones start, complete and are dropped without growing the stack by
//! their number.
//!
//! Up to a depth all of that is recursion, as with senders that are not boxed. From there on it is deferred:
//! a boxed operation that is about to start inside the start of the one around it, or that has to continue
//! because the one inside it has completed, is put on a list of the thread. The frame at the limit resumes it
//! when control returns to it. Only the frames between two boxed operations, one directly inside the other,
//! return earlier because of that. These are frames of operations and receivers, not of code that waits for
//! the work: a closure that blocks until some other boxed work has completed is not directly inside of it,
//! and that work runs at once.
//!
//! A deferred operation belongs to the list: its `start` was called, or the caller was the only user of it.
//! The list resumes it once, on the same thread.

#![allow(unsafe_code)]

use core::cell::{Cell, RefCell};
use core::ptr::{self, NonNull};

use convoke_core::raw::FrameBox;
use convoke_core::raw::sync::thread_local;

use super::enclosing::Enclosing;

/// The maximum number of nested boxed operations on a stack, and of nested boxed senders that are dropped by
/// recursion.
const MAX_DEPTH: usize = 32;

/// The list node of a boxed operation. Its address is that of the operation.
pub(crate) struct Head {
    /// Resumes the operation that the head belongs to.
    resume: unsafe fn(NonNull<Head>, &Trampoline),
    next: Cell<Option<Resumable>>,
}

impl Head {
    pub(super) const fn new(resume: unsafe fn(NonNull<Self>, &Trampoline)) -> Self {
        Self { resume, next: Cell::new(None) }
    }
}

/// The right to resume a boxed operation, once. The operation is alive until then.
pub(crate) struct Resumable(NonNull<Head>);

impl Resumable {
    /// Creates the right to resume the operation with this head.
    ///
    /// # Safety
    /// The head is that of a live operation whose only user is the caller. The caller touches it no more.
    pub(crate) unsafe fn new(head: NonNull<Head>) -> Self {
        Self(head)
    }

    fn head(&self) -> &Head {
        // SAFETY: `new` requires that the operation is alive, and it is not resumed yet.
        unsafe { self.0.as_ref() }
    }

    fn resume(self, trampoline: &Trampoline) {
        let resume = self.head().resume;
        // SAFETY: `resume` is the function of this operation; `new` requires that the caller was its only
        // user, and `self` is used up.
        unsafe { resume(self.0, trampoline) };
    }
}

/// The boxed operation that a thread runs, and the list of those that are deferred meanwhile.
pub(crate) struct Trampoline {
    depth: usize,
    /// The operation whose start or completion runs now. Others are deferred only if they are directly inside
    /// of it, or around the one that completes.
    at: Cell<Option<Enclosing>>,
    first: Cell<Option<Resumable>>,
    /// The address of the last one in the list.
    last: Cell<Option<NonNull<Head>>>,
}

thread_local! {
    static TRAMPOLINE: Cell<*const Trampoline> = Cell::new(ptr::null());
}

/// Restores the previous trampoline, also if a receiver panics.
struct Restore(*const Trampoline);

impl Drop for Restore {
    fn drop(&mut self) {
        TRAMPOLINE.with(|trampoline| trampoline.set(self.0));
    }
}

/// Resumes what is left if a receiver panics, so that no one waits for it forever.
impl Drop for Trampoline {
    #[inline]
    fn drop(&mut self) {
        while let Some(operation) = self.take() {
            operation.resume(self);
        }
    }
}

impl Trampoline {
    /// Resumes an operation that is inside of `inside_of`: now, or later if it is nested too deeply.
    pub(crate) fn resume(operation: Resumable, inside_of: Option<Enclosing>) {
        let outer = TRAMPOLINE.with(Cell::get);
        // SAFETY: the cell points to a trampoline only while `run` has it on the stack of this thread.
        let around = unsafe { outer.as_ref() };
        match around {
            Some(trampoline)
                if trampoline.depth >= MAX_DEPTH
                    && inside_of.is_some()
                    && trampoline.at.get() == inside_of =>
            {
                trampoline.defer(operation);
            }
            _ => Self::run(operation, outer, around.map_or(0, |trampoline| trampoline.depth + 1)),
        }
    }

    /// Makes a trampoline and resumes the operation, and all that it defers, on it. `outer` is the trampoline
    /// of this thread, or null.
    fn run(operation: Resumable, outer: *const Self, depth: usize) {
        let trampoline = Self { depth, at: Cell::new(None), first: Cell::new(None), last: Cell::new(None) };
        trampoline.defer(operation);
        let _restore = Restore(outer);
        TRAMPOLINE.with(|cell| cell.set(&raw const trampoline));
        while let Some(operation) = trampoline.take() {
            operation.resume(&trampoline);
        }
    }

    /// Sets the operation that the following work is inside of, or leads to.
    pub(super) fn set_at(&self, operation: Option<Enclosing>) {
        self.at.set(operation);
    }

    /// Appends an operation to the list.
    fn defer(&self, operation: Resumable) {
        match self.last.replace(Some(operation.0)) {
            // SAFETY: an operation on the list is alive until it is resumed, and `take` removes it before
            // that.
            Some(last) => unsafe { last.as_ref() }.next.set(Some(operation)),
            None => self.first.set(Some(operation)),
        }
    }

    fn take(&self) -> Option<Resumable> {
        let operation = self.first.take()?;
        let next = operation.head().next.take();
        if next.is_none() {
            self.last.set(None);
        }
        self.first.set(next);
        Some(operation)
    }
}

/// A value that is stored in a box only to be dropped.
pub(crate) trait Droppable {}

impl<T> Droppable for T {}

/// The drop of a boxed sender that runs on this stack, and the deferred drops.
struct Dropping {
    depth: usize,
    late: RefCell<Vec<FrameBox<dyn Droppable>>>,
}

thread_local! {
    static DROPPING: Cell<*const Dropping> = Cell::new(ptr::null());
}

/// Restores the previous state, also if a destructor panics.
struct RestoreDropping(*const Dropping);

impl Drop for RestoreDropping {
    fn drop(&mut self) {
        DROPPING.with(|dropping| dropping.set(self.0));
    }
}

/// Drops a sender: now, or later if it is nested too deeply.
pub(super) fn drop_sender(sender: FrameBox<dyn Droppable>) {
    let outer = DROPPING.with(Cell::get);
    // SAFETY: the cell points to a `Dropping` only while this function has it on the stack of this thread.
    let around = unsafe { outer.as_ref() };
    if let Some(dropping) = around.filter(|dropping| dropping.depth >= MAX_DEPTH) {
        return dropping.late.borrow_mut().push(sender);
    }
    let dropping =
        Dropping { depth: around.map_or(0, |around| around.depth + 1), late: RefCell::new(Vec::new()) };
    let _restore = RestoreDropping(outer);
    DROPPING.with(|cell| cell.set(&raw const dropping));
    drop(sender);
    loop {
        let next = dropping.late.borrow_mut().pop();
        if next.is_none() {
            break;
        }
    }
}

/// Asks a boxed sender where it completes, and answers `None` if it is nested too deeply.
pub(crate) fn ask<T>(question: impl FnOnce() -> Option<T>) -> Option<T> {
    struct Asked<'a>(&'a Cell<usize>);
    impl Drop for Asked<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    ASKED.with(|depth| {
        if depth.get() >= MAX_DEPTH {
            return None;
        }
        depth.set(depth.get() + 1);
        let _asked = Asked(depth);
        question()
    })
}

thread_local! {
    static ASKED: Cell<usize> = Cell::new(0);
}
