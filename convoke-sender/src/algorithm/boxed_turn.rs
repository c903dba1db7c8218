//! How boxed senders inside of one another start, complete and are dropped without growing the stack by their number.
//!
//! Up to a depth all of that is recursion, as with senders that are not boxed. From there on a boxed operation that is
//! about to be started inside the start of the one around it, or that has to go on because the one inside it has
//! completed, is put into a list of the thread; whoever is at the limit goes on with it when the call has returned to it.
//! Only the frames between two boxed operations, one directly inside of the other, return earlier by that. They are those
//! of operations and receivers, not of code that waits for the work: whoever blocks in a closure until some other boxed
//! work has completed is not directly inside, and has that work done at once.
//!
//! What is put off belongs to who put it there: an operation whose `start` was called, or with whose work the caller is
//! alone. It is gone on with once, by the same thread.

#![allow(unsafe_code)]

use core::cell::{Cell, RefCell};
use core::ptr::{self, NonNull};

use convoke_core::raw::sync::thread_local;

pub(crate) use crate::operation::Enclosing;

/// How many boxed operations may be inside of one another on a stack, or boxed senders inside of one another be dropped by
/// recursion.
const DEEPEST: usize = 32;

/// The part of a boxed operation by which it is put off. Its address is that of the operation.
pub(super) struct Head {
    /// Goes on with the operation that the head belongs to.
    go_on: unsafe fn(NonNull<Head>, &Turn),
    next: Cell<Option<NonNull<Head>>>,
}

impl Head {
    pub(super) const fn new(go_on: unsafe fn(NonNull<Self>, &Turn)) -> Self {
        Self { go_on, next: Cell::new(None) }
    }
}

/// What a thread does with a boxed operation, and what it has put off meanwhile.
pub(super) struct Turn {
    depth: usize,
    /// The operation whose start or completion runs just now: others put themselves off only if they are directly
    /// inside of it or around what completes.
    at: Cell<Option<Enclosing>>,
    first: Cell<Option<NonNull<Head>>>,
    last: Cell<Option<NonNull<Head>>>,
}

thread_local! {
    static TURN: Cell<*const Turn> = Cell::new(ptr::null());
}

/// Puts back the turn that was there before, also if a receiver panics.
struct Ended(*const Turn);

impl Drop for Ended {
    fn drop(&mut self) {
        TURN.with(|turn| turn.set(self.0));
    }
}

/// Goes on with what is left if a receiver panics: nobody is to wait for it for ever.
impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        while let Some(head) = self.take() {
            // SAFETY: it was put there by who may go on with it, and is taken out once.
            unsafe { (head.as_ref().go_on)(head, self) };
        }
    }
}

impl Turn {
    /// Goes on with an operation that is inside of `inside_of`, now, or, deep inside of others, in a moment.
    ///
    /// # Safety
    /// The head is that of a live operation, and may be gone on with once. The caller touches neither afterwards.
    pub(super) unsafe fn go_on(head: NonNull<Head>, inside_of: Option<Enclosing>) {
        let outer = TURN.with(Cell::get);
        // SAFETY: a turn is in the cell only while `run` has it on the stack of this thread.
        let around = unsafe { outer.as_ref() };
        match around {
            Some(turn) if turn.depth >= DEEPEST && inside_of.is_some() && turn.at.get() == inside_of => {
                // SAFETY: the operation is alive, and ours alone.
                unsafe { turn.put_off(head) };
            }
            // SAFETY: the contract of this function.
            _ => unsafe { Self::run(head, outer, around.map_or(0, |turn| turn.depth + 1)) },
        }
    }

    /// # Safety
    /// As for `go_on`; `outer` is the turn of this thread.
    unsafe fn run(head: NonNull<Head>, outer: *const Self, depth: usize) {
        let turn =
            Self { depth, at: Cell::new(None), first: Cell::new(Some(head)), last: Cell::new(Some(head)) };
        let _ended = Ended(outer);
        TURN.with(|cell| cell.set(&raw const turn));
        while let Some(head) = turn.take() {
            // SAFETY: it was put there by who may go on with it, and is taken out once.
            unsafe { (head.as_ref().go_on)(head, &turn) };
        }
    }

    /// What is done from here on is done inside of this operation, or leads to it.
    pub(super) fn set_at(&self, operation: Option<Enclosing>) {
        self.at.set(operation);
    }

    /// # Safety
    /// The head is that of a live operation, which the caller may go on with.
    unsafe fn put_off(&self, head: NonNull<Head>) {
        match self.last.replace(Some(head)) {
            // SAFETY: what is in the list is alive until it is gone on with.
            Some(last) => unsafe { last.as_ref() }.next.set(Some(head)),
            None => self.first.set(Some(head)),
        }
    }

    fn take(&self) -> Option<NonNull<Head>> {
        let head = self.first.get()?;
        // SAFETY: what is in the list is alive until it is gone on with.
        let next = unsafe { head.as_ref() }.next.take();
        self.first.set(next);
        if next.is_none() {
            self.last.set(None);
        }
        Some(head)
    }
}

/// Something that is kept in a box only to be dropped.
pub(super) trait Droppable {}

impl<T> Droppable for T {}

/// Drops of boxed senders that run on this stack.
struct Dropping {
    depth: usize,
    late: RefCell<Vec<Box<dyn Droppable>>>,
}

thread_local! {
    static DROPPING: Cell<*const Dropping> = Cell::new(ptr::null());
}

/// Puts back what was there before, also if a destructor panics.
struct Dropped(*const Dropping);

impl Drop for Dropped {
    fn drop(&mut self) {
        DROPPING.with(|dropping| dropping.set(self.0));
    }
}

/// Drops a sender, now, or, deep inside of others, in a moment.
pub(super) fn drop_sender(sender: Box<dyn Droppable>) {
    let outer = DROPPING.with(Cell::get);
    // SAFETY: this is in the cell only while this function has it on the stack of this thread.
    let around = unsafe { outer.as_ref() };
    if let Some(dropping) = around.filter(|dropping| dropping.depth >= DEEPEST) {
        return dropping.late.borrow_mut().push(sender);
    }
    let dropping =
        Dropping { depth: around.map_or(0, |around| around.depth + 1), late: RefCell::new(Vec::new()) };
    let _dropped = Dropped(outer);
    DROPPING.with(|cell| cell.set(&raw const dropping));
    drop(sender);
    loop {
        let next = dropping.late.borrow_mut().pop();
        if next.is_none() {
            break;
        }
    }
}

/// Asks a boxed sender where it completes. One that is deep inside of others need not know.
pub(super) fn ask<T>(question: impl FnOnce() -> Option<T>) -> Option<T> {
    struct Asked<'a>(&'a Cell<usize>);
    impl Drop for Asked<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    ASKED.with(|depth| {
        if depth.get() >= DEEPEST {
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
