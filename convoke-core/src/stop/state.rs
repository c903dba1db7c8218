//! The state behind sources and tokens: a flag, a reason and a list of callbacks, guarded by one lock that is
//! never held while foreign code runs.
//!
//! The rules of who may touch what:
//! 1. A node's links and the list's fields are touched only with the list's lock held.
//! 2. A node stays where it is from `insert` until `remove` has returned or, if it is never removed, for as long
//!    as the state lives. `remove` returns only when no other thread is inside the node's callback.
//! 3. Whoever takes a node out of the list to run it calls `invoke` once and does not touch the node afterwards:
//!    the callback may have destroyed it.
//! 4. The state outlives `request_stop`. Whoever calls it holds what keeps it alive.

use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::time::Instant;

use super::StopReason;
use super::lock::{Guard, Lock};
use crate::Panic;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread;

/// What every source has, wherever it lives.
pub(crate) struct StopState {
    /// Set once, together with the list's reason; alone it answers the question that is asked most.
    requested: AtomicBool,
    list: Lock<List>,
    deadline: Option<Instant>,
}

struct List {
    head: *mut Node,
    reason: Option<StopReason>,
    /// The node whose callback runs now. Compared by address, never followed.
    running: *const Node,
    runner: Option<thread::ThreadId>,
    /// How many wait in `remove` for a callback that runs on another thread.
    waiting: usize,
}

// SAFETY: rule 1: the pointers are followed with the lock held, and rule 2 keeps what they point to alive.
unsafe impl Send for List {}

/// One registered callback: the part the list knows.
pub(crate) struct Node {
    /// Written by `insert`; before that nobody looks.
    links: MaybeUninit<Links>,
    /// Runs the callback this node belongs to.
    invoke: unsafe fn(NonNull<Node>, StopReason),
}

struct Links {
    next: *mut Node,
    /// What points to this node: the head of the list, or `next` of the node before it. Null after it was taken out to
    /// be run.
    pointed_by: *mut *mut Node,
}

impl Node {
    pub(crate) const fn new(invoke: unsafe fn(NonNull<Node>, StopReason)) -> Self {
        Self { links: MaybeUninit::uninit(), invoke }
    }

    /// # Safety
    /// The node is alive. The links may be read once `insert` has written them.
    #[inline]
    unsafe fn links(node: *mut Self) -> *mut Links {
        // SAFETY: the caller's.
        unsafe { (&raw mut (*node).links).cast() }
    }
}

impl StopState {
    pub(crate) fn new(deadline: Option<Instant>) -> Self {
        Self {
            requested: AtomicBool::new(false),
            list: Lock::new(List {
                head: ptr::null_mut(),
                reason: None,
                running: ptr::null(),
                runner: None,
                waiting: 0,
            }),
            deadline,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    #[inline]
    pub(crate) fn stop_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    pub(crate) fn reason(&self) -> Option<StopReason> {
        if self.stop_requested() { self.list.lock().reason } else { None }
    }

    /// Adds a callback; if a stop was requested already it is not added, and the caller runs it himself.
    ///
    /// # Safety
    /// Rule 2, and the node is in no list.
    #[inline]
    pub(crate) unsafe fn insert(&self, node: NonNull<Node>) -> Result<(), StopReason> {
        let list = self.list.lock();
        if let Some(reason) = list.reason {
            return Err(reason);
        }
        let head = list.as_ptr();
        // SAFETY: rule 1, we hold the lock; the caller promised that the node is alive and in no list.
        unsafe {
            let (head, next) = (&raw mut (*head).head, (*head).head);
            let links = Node::links(node.as_ptr());
            links.write(Links { next, pointed_by: head });
            if !next.is_null() {
                (*Node::links(next)).pointed_by = &raw mut (*links).next;
            }
            *head = node.as_ptr();
        }
        Ok(())
    }

    /// Takes a callback out again. Afterwards it will not run, and does not run on another thread.
    /// From inside the callback itself it returns at once.
    ///
    /// # Safety
    /// The node was given to `insert` of this state and has not been removed yet.
    #[inline]
    pub(crate) unsafe fn remove(&self, node: NonNull<Node>) {
        // The way everybody goes is short, so that it can be put into the caller's code; all others are one call.
        if let Some(_list) = self.list.try_lock() {
            // SAFETY: rule 1, we hold the lock; the caller promised that the node is alive, and that it was inserted.
            unsafe {
                if !(*Node::links(node.as_ptr())).pointed_by.is_null() {
                    unlink(node.as_ptr());
                    return;
                }
            }
        }
        // SAFETY: the caller's.
        unsafe { self.remove_slowly(node) };
    }

    /// # Safety
    /// As for `remove`.
    #[cold]
    unsafe fn remove_slowly(&self, node: NonNull<Node>) {
        let list = self.list.lock();
        // SAFETY: as in `remove`.
        unsafe {
            if (*Node::links(node.as_ptr())).pointed_by.is_null() {
                Self::wait_for_callback(list, node.as_ptr());
            } else {
                unlink(node.as_ptr());
            }
        }
    }

    /// Returns when the callback has run, unless we are inside it.
    fn wait_for_callback(mut list: Guard<'_, List>, node: *const Node) {
        if list.running != node {
            return;
        }
        if list.runner == Some(thread::current().id()) {
            // The callback removes itself. The runner must not take its address for that of a later one.
            list.running = ptr::null();
            return;
        }
        list.waiting += 1;
        while list.running == node {
            list = list.wait_for_change();
        }
        list.waiting -= 1;
    }

    /// Requests a stop and runs the callbacks, newest first, on this thread. Says whether this was the first request.
    /// If callbacks panic all others are run nevertheless, then the first panic goes on.
    pub(crate) fn request_stop(&self, reason: StopReason) -> bool {
        let mut list = self.list.lock();
        if list.reason.is_some() {
            return false;
        }
        list.reason = Some(reason);
        self.requested.store(true, Ordering::Release);
        if list.head.is_null() {
            return true;
        }
        list.runner = Some(thread::current().id());
        let mut first_panic = None;
        while let Some(node) = NonNull::new(list.head) {
            // SAFETY: rules 1 and 2: we hold the lock and a node in the list is alive.
            let invoke = unsafe {
                unlink(node.as_ptr());
                (*Node::links(node.as_ptr())).pointed_by = ptr::null_mut();
                (*node.as_ptr()).invoke
            };
            list.running = node.as_ptr();
            drop(list);
            // SAFETY: rule 3: we took it out of the list, so nobody else runs it, and we do not touch it again;
            // rule 2: it is alive, for `remove` waits for us.
            if let Err(panic) = Panic::catch(|| unsafe { invoke(node, reason) }) {
                // A later one is dropped here, outside the lock; that does not unwind, see `Panic`.
                first_panic.get_or_insert(panic);
            }
            list = self.list.lock();
            list.running = ptr::null();
            if list.waiting > 0 {
                list.changed();
            }
        }
        drop(list);
        if let Some(panic) = first_panic {
            panic.resume();
        }
        true
    }
}

/// Takes a node out of its list. What its own links say afterwards is for the caller to decide.
///
/// # Safety
/// The node is in a list whose lock is held, and no reference to the list is.
#[inline]
unsafe fn unlink(node: *mut Node) {
    // SAFETY: rule 1: the lock is held; rule 2: the neighbours are in the list and alive, and so is the list.
    unsafe {
        let Links { next, pointed_by } = Node::links(node).read();
        *pointed_by = next;
        if !next.is_null() {
            (*Node::links(next)).pointed_by = pointed_by;
        }
    }
}

impl fmt::Debug for StopState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopState").field("reason", &self.reason()).field("deadline", &self.deadline).finish()
    }
}
