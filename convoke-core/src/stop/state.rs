//! The state behind sources and tokens: a flag, a reason and a list of callbacks. One lock guards it, which
//! is never held while foreign code runs.
//!
//! Rules:
//! 1. The links of a node, and the fields of the list, are accessed only with the list's lock held.
//! 2. A node does not move from `insert` until `remove` has returned or, if it is never removed, for as long
//!    as the state lives. `remove` returns only when no other thread is inside the node's callback.
//! 3. The thread that takes a node out of the list to run it calls `invoke` once and does not touch the node
//!    afterwards: the callback may have destroyed it.
//! 4. The state outlives `request_stop`: the caller holds a handle that keeps it alive.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::time::Instant;

use super::lock::{Guard, Lock};
use super::{InPlaceStop, StopReason};
use crate::Panic;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{Arc, thread};

/// The state of one source, on the heap or in an operation.
pub(crate) struct StopState {
    /// Set once, together with the list's reason. Answers the most frequent question without the lock.
    requested: AtomicBool,
    /// The number of handles that can request a stop. It never rises from zero again.
    sources: AtomicU32,
    list: Lock<List>,
    deadline: Option<Instant>,
}

struct List {
    head: *mut Node,
    reason: Option<StopReason>,
    /// The node whose callback runs now. Compared by address, never dereferenced.
    running: *const Node,
    runner: Option<thread::ThreadId>,
    /// The number of threads that wait in `remove` for a callback on another thread.
    waiting: usize,
    /// The source that this request came from, if it was passed on by another source: see `request_stop`.
    /// Used only by the thread that runs the callbacks.
    from: Option<Onward>,
}

// SAFETY: rule 1: the pointers are dereferenced with the lock held, and rule 2 keeps the nodes alive. `from`
// is used only by the thread that wrote it, the one that runs the callbacks.
unsafe impl Send for List {}

/// One registered callback, as the list knows it.
pub(crate) struct Node {
    /// Written by `insert`, and not read before.
    links: MaybeUninit<Links>,
    /// Runs the callback of this node, or returns the source that it passes the request on to.
    invoke: unsafe fn(NonNull<Node>, StopReason) -> Option<Onward>,
}

/// A source that a callback passes the request on to, with the handle that keeps it alive until the request
/// is done.
pub struct Onward {
    state: NonNull<StopState>,
    owner: NonNull<()>,
    release: unsafe fn(NonNull<()>),
}

impl Onward {
    /// Creates one for a source in an `Arc`.
    pub(super) fn counted(state: Arc<StopState>) -> Self {
        // SAFETY: `Arc::into_raw` never returns null.
        let state = unsafe { NonNull::new_unchecked(Arc::into_raw(state).cast_mut()) };
        // SAFETY: `Onward::release` calls this once, with the pointer that `into_raw` returned.
        let release = |owner: NonNull<()>| drop(unsafe { Arc::from_raw(owner.cast::<StopState>().as_ptr()) });
        Self { state, owner: state.cast(), release }
    }

    /// Creates one for a source inside an operation. Calls `release(owner)` once, when the callbacks have
    /// run.
    ///
    /// # Safety
    /// The source stays alive until `release` is called.
    pub unsafe fn in_place(stop: &InPlaceStop, owner: NonNull<()>, release: unsafe fn(NonNull<()>)) -> Self {
        Self { state: NonNull::from(stop.state()), owner, release }
    }

    fn state(&self) -> &StopState {
        // SAFETY: alive until it is released, by the count of `counted` or the contract of `in_place`;
        // `release` consumes `self`.
        unsafe { self.state.as_ref() }
    }

    /// Releases the source, which may be destroyed by it.
    fn release(self) {
        // SAFETY: `counted` and `in_place` allow one call with `owner`, and `self` is consumed.
        unsafe { (self.release)(self.owner) };
    }
}

impl fmt::Debug for Onward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Onward").finish_non_exhaustive()
    }
}

struct Links {
    next: *mut Node,
    /// The pointer to this node: the head of the list, or `next` of the node before it. Null after the node
    /// was taken out to be run.
    pointed_by: *mut *mut Node,
}

impl Node {
    pub(crate) const fn new(invoke: unsafe fn(NonNull<Node>, StopReason) -> Option<Onward>) -> Self {
        Self { links: MaybeUninit::uninit(), invoke }
    }

    /// Returns the links of a node.
    ///
    /// # Safety
    /// The node is alive. The links may be read once `insert` has written them.
    #[inline]
    unsafe fn links(node: *mut Self) -> *mut Links {
        // SAFETY: the node is alive, by the contract of this function. No reference is made, only a pointer
        // to a field.
        unsafe { (&raw mut (*node).links).cast() }
    }
}

impl StopState {
    pub(crate) fn new(deadline: Option<Instant>) -> Self {
        Self {
            requested: AtomicBool::new(false),
            sources: AtomicU32::new(1),
            list: Lock::new(List {
                head: ptr::null_mut(),
                reason: None,
                running: ptr::null(),
                runner: None,
                waiting: 0,
                from: None,
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

    /// Returns true if a stop was requested, or if a handle is left that can request one.
    pub(crate) fn stop_possible(&self) -> bool {
        // The handles first: the last one may request a stop just before it is dropped.
        self.sources.load(Ordering::Acquire) > 0 || self.stop_requested()
    }

    /// Counts another handle that can request a stop. The caller has one.
    pub(super) fn source_added(&self) {
        self.sources.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a handle less.
    pub(super) fn source_dropped(&self) {
        self.sources.fetch_sub(1, Ordering::Release);
    }

    pub(crate) fn reason(&self) -> Option<StopReason> {
        if self.stop_requested() { self.list.lock().reason } else { None }
    }

    /// Adds a callback. If a stop was requested already, returns the reason, and the caller runs the
    /// callback.
    ///
    /// # Safety
    /// Rule 2 holds for the node, and it is in no list.
    #[inline]
    pub(crate) unsafe fn insert(&self, node: NonNull<Node>) -> Result<(), StopReason> {
        let list = self.list.lock();
        if let Some(reason) = list.reason {
            return Err(reason);
        }
        let head = list.as_ptr();
        // SAFETY: rule 1: `list` holds the lock. The node is alive and in no list: the contract of this
        // function.
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

    /// Removes a callback. Afterwards it does not run any more, and does not run on another thread. Called
    /// from inside the callback itself it returns at once.
    ///
    /// # Safety
    /// The node was inserted into this state and has not been removed.
    #[inline]
    pub(crate) unsafe fn remove(&self, node: NonNull<Node>) {
        // The frequent case is short, so that it is inlined into the caller; everything else is one call.
        if let Some(_list) = self.list.try_lock() {
            // SAFETY: rule 1: `_list` holds the lock. Rule 2: the node is alive, as it was not removed yet.
            unsafe {
                if !(*Node::links(node.as_ptr())).pointed_by.is_null() {
                    unlink(node.as_ptr());
                    return;
                }
            }
        }
        // SAFETY: the node was inserted and not removed: the contract of this function.
        unsafe { self.remove_slowly(node) };
    }

    /// Removes a callback if the lock is contended, or if the callback was taken out to be run.
    ///
    /// # Safety
    /// As for [`remove`](Self::remove).
    #[cold]
    unsafe fn remove_slowly(&self, node: NonNull<Node>) {
        let list = self.list.lock();
        // SAFETY: rule 1: `list` holds the lock. Rule 2: the node is alive, as it was not removed yet.
        unsafe {
            if (*Node::links(node.as_ptr())).pointed_by.is_null() {
                Self::wait_for_callback(list, node.as_ptr());
            } else {
                unlink(node.as_ptr());
            }
        }
    }

    /// Waits until the callback has run, unless this is called from inside it.
    fn wait_for_callback(mut list: Guard<'_, List>, node: *const Node) {
        if list.running != node {
            return;
        }
        if list.runner == Some(thread::current().id()) {
            // The callback removes itself. The address may be reused by a later node, which must not be taken
            // for it.
            list.running = ptr::null();
            return;
        }
        list.waiting += 1;
        while list.running == node {
            list = list.wait_for_change();
        }
        list.waiting -= 1;
    }

    /// Requests a stop and runs the callbacks, newest first, on this thread. Returns true if this was the
    /// first request. If callbacks panic, all others run nevertheless; then the first panic is resumed.
    ///
    /// A callback that passes the request on to another source does not recurse. This loop goes down to that
    /// source, runs its callbacks, and comes back up by `from`. The order is that of a recursion, and
    /// `remove` waits for the same callbacks as it would in a recursion.
    pub(crate) fn request_stop(&self, reason: StopReason) -> bool {
        match self.begin(reason) {
            Begun::Late => return false,
            Begun::Alone => return true,
            Begun::WithCallbacks => {}
        }
        let mut first_panic = None;
        // The source whose callbacks run now; `None` stands for `self`.
        let mut below: Option<Onward> = None;
        loop {
            let state = below.as_ref().map_or(self, Onward::state);
            if let Some(next) = state.run_until_passed_on(reason, &mut first_panic) {
                if next.state().begin(reason) == Begun::WithCallbacks {
                    let from = below.take();
                    next.state().list.lock().from = from;
                    below = Some(next);
                } else {
                    release(next, &mut first_panic);
                    state.callback_has_run();
                }
                continue;
            }
            let Some(done) = below.take() else { break };
            below = done.state().list.lock().from.take();
            release(done, &mut first_panic);
            below.as_ref().map_or(self, Onward::state).callback_has_run();
        }
        if let Some(panic) = first_panic {
            panic.resume();
        }
        true
    }

    /// Records the request and returns what its maker has to do.
    fn begin(&self, reason: StopReason) -> Begun {
        let mut list = self.list.lock();
        if list.reason.is_some() {
            return Begun::Late;
        }
        list.reason = Some(reason);
        self.requested.store(true, Ordering::Release);
        if list.head.is_null() {
            return Begun::Alone;
        }
        list.runner = Some(thread::current().id());
        Begun::WithCallbacks
    }

    /// Runs callbacks until none is left, or until one passes the request on. That one counts as running
    /// until [`callback_has_run`](Self::callback_has_run) is called.
    fn run_until_passed_on(&self, reason: StopReason, first_panic: &mut Option<Panic>) -> Option<Onward> {
        let mut list = self.list.lock();
        while let Some(node) = NonNull::new(list.head) {
            // SAFETY: rule 1: `list` holds the lock. Rule 2: a node in the list is alive.
            let invoke = unsafe {
                unlink(node.as_ptr());
                (*Node::links(node.as_ptr())).pointed_by = ptr::null_mut();
                (*node.as_ptr()).invoke
            };
            list.running = node.as_ptr();
            drop(list);
            // SAFETY: rule 3: this thread took it out of the list, so no other thread runs it, and it is not
            // touched afterwards. Rule 2: it is alive, because `remove` waits while `running` is this node.
            match Panic::catch(|| unsafe { invoke(node, reason) }) {
                Ok(None) => {}
                Ok(next) => return next,
                // A second panic is dropped here, outside the lock. Dropping a `Panic` does not unwind.
                Err(panic) => {
                    first_panic.get_or_insert(panic);
                }
            }
            list = self.callback_has_run();
        }
        None
    }

    /// Records that the callback that runs has returned. Returns with the lock held.
    fn callback_has_run(&self) -> Guard<'_, List> {
        let mut list = self.list.lock();
        list.running = ptr::null();
        if list.waiting > 0 {
            list.changed();
        }
        list
    }
}

/// Releases a source in which the request has been made. Stores the panic of that if it is the first.
fn release(source: Onward, first_panic: &mut Option<Panic>) {
    if let Err(panic) = Panic::catch(|| source.release()) {
        first_panic.get_or_insert(panic);
    }
}

/// The result of a request.
#[derive(PartialEq, Eq)]
enum Begun {
    /// Not the first one: nothing to do.
    Late,
    /// The first one, without callbacks: nothing to do.
    Alone,
    /// The first one: its maker runs the callbacks.
    WithCallbacks,
}

/// Unlinks a node from its list. Leaves the node's own links as they are.
///
/// # Safety
/// The node is in a list whose lock is held, and there is no reference to the list's fields.
#[inline]
unsafe fn unlink(node: *mut Node) {
    // SAFETY: rule 1: the lock is held, by the contract. Rule 2: the node's neighbours are in the list and so
    // alive.
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
