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

#![allow(unsafe_code)]

use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::time::Instant;

use super::lock::{Guard, Lock};
use super::{InPlaceStop, StopReason};
use crate::Panic;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, thread};

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
    /// Where the request that runs the callbacks came from, if it came from another source: see `request_stop`. Only
    /// the thread that runs them uses it.
    from: Option<Onward>,
}

// SAFETY: rule 1: the pointers are followed with the lock held, and rule 2 keeps what they point to alive. `from` is used
// by the thread that wrote it.
unsafe impl Send for List {}

/// One registered callback: the part the list knows.
pub(crate) struct Node {
    /// Written by `insert`; before that nobody looks.
    links: MaybeUninit<Links>,
    /// Runs the callback this node belongs to, or says which source it passes the request on to.
    invoke: unsafe fn(NonNull<Node>, StopReason) -> Option<Onward>,
}

/// A source that a callback passes the request on to, and what keeps it alive until the request has been made there.
pub struct Onward {
    state: NonNull<StopState>,
    owner: NonNull<()>,
    release: unsafe fn(NonNull<()>),
}

impl Onward {
    /// A source in counted memory.
    pub(super) fn counted(state: Arc<StopState>) -> Self {
        // SAFETY: an `Arc` is never null.
        let state = unsafe { NonNull::new_unchecked(Arc::into_raw(state).cast_mut()) };
        // SAFETY: called once, with the pointer that `into_raw` returned.
        let release = |owner: NonNull<()>| drop(unsafe { Arc::from_raw(owner.cast::<StopState>().as_ptr()) });
        Self { state, owner: state.cast(), release }
    }

    /// A source inside an operation. `release` is called once with `owner`, when its callbacks have run.
    ///
    /// # Safety
    /// The source stays alive until `release` is called.
    pub unsafe fn in_place(stop: &InPlaceStop, owner: NonNull<()>, release: unsafe fn(NonNull<()>)) -> Self {
        Self { state: NonNull::from(stop.state()), owner, release }
    }

    fn state(&self) -> &StopState {
        // SAFETY: `counted` and `in_place`: it is alive until it is released.
        unsafe { self.state.as_ref() }
    }

    /// Releases the source. It may be gone afterwards.
    fn release(self) {
        // SAFETY: called once, as `self` is consumed.
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
    /// What points to this node: the head of the list, or `next` of the node before it. Null after it was taken out to
    /// be run.
    pointed_by: *mut *mut Node,
}

impl Node {
    pub(crate) const fn new(invoke: unsafe fn(NonNull<Node>, StopReason) -> Option<Onward>) -> Self {
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
    ///
    /// A callback that passes the request on to another source does not recurse: this loop goes down to that source,
    /// runs its callbacks, and comes back up by `from`. The order is that of a recursion, and so is what `remove`
    /// waits for.
    pub(crate) fn request_stop(&self, reason: StopReason) -> bool {
        match self.begin(reason) {
            Begun::Late => return false,
            Begun::Alone => return true,
            Begun::WithCallbacks => {}
        }
        let mut first_panic = None;
        // The source whose callbacks run; `None` is this one.
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

    /// Notes the request down.
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

    /// Runs callbacks until there are none left, or one passes the request on. Then that one counts as running, until
    /// [`callback_has_run`](Self::callback_has_run).
    fn run_until_passed_on(&self, reason: StopReason, first_panic: &mut Option<Panic>) -> Option<Onward> {
        let mut list = self.list.lock();
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
            match Panic::catch(|| unsafe { invoke(node, reason) }) {
                Ok(None) => {}
                Ok(next) => return next,
                // A later one is dropped here, outside the lock; that does not unwind, see `Panic`.
                Err(panic) => {
                    first_panic.get_or_insert(panic);
                }
            }
            list = self.callback_has_run();
        }
        None
    }

    /// The callback that was taken out last has run. Returns with the lock held.
    fn callback_has_run(&self) -> Guard<'_, List> {
        let mut list = self.list.lock();
        list.running = ptr::null();
        if list.waiting > 0 {
            list.changed();
        }
        list
    }
}

/// Releases a source in which the request has been made. What that throws is kept if it is the first.
fn release(source: Onward, first_panic: &mut Option<Panic>) {
    if let Err(panic) = Panic::catch(|| source.release()) {
        first_panic.get_or_insert(panic);
    }
}

/// What comes of a request.
#[derive(PartialEq, Eq)]
enum Begun {
    /// There was one before.
    Late,
    /// It is the first, and there are no callbacks.
    Alone,
    /// It is the first, and its maker runs the callbacks.
    WithCallbacks,
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
