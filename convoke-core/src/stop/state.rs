//! The state behind sources and tokens: a flag, a reason and a list of callbacks. One lock guards it, which
//! is never held while foreign code runs.
//!
//! Rules:
//! 1. The list of callbacks, and the fields beside it, are accessed only with the lock held.
//! 2. A node does not move from `insert` until `remove` has returned or, if it is never removed, for as long
//!    as the state lives. `remove` returns only when no other thread is inside the node's callback.
//! 3. The thread that takes a node out of the list to run it calls `invoke` once and does not touch the node
//!    afterwards: the callback may have destroyed it.
//! 4. The state outlives `request_stop`: the caller holds a handle that keeps it alive.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use std::time::Instant;

use super::lock::{Guard, Lock};
use super::{InPlaceStop, StopReason};
use crate::Panic;
use crate::frames::frame_arc::FrameArc;
use crate::intrusive_list::{IntrusiveList, Linked, Links};
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::thread;

/// The largest number of handles that can request a stop. A thread that is refused one counts it for a moment;
/// there are fewer threads than fit between this and an overflow.
const MOST_SOURCES: u32 = i32::MAX as u32;

/// The state of one source, on the heap or in an operation.
pub(crate) struct StopState {
    /// Set once, together with the reason. Answers the most frequent question without the lock.
    requested: AtomicBool,
    /// The number of handles that can request a stop. It never rises from zero again.
    sources: AtomicU32,
    callbacks: Lock<Callbacks>,
    deadline: Option<Instant>,
}

struct Callbacks {
    /// The newest first.
    list: IntrusiveList<Node>,
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

// SAFETY: rule 1: the list is used with the lock held, and rule 2 keeps the nodes alive. `from` is used only
// by the thread that wrote it, the one that runs the callbacks.
unsafe impl Send for Callbacks {}

/// One registered callback, as the list knows it.
pub(crate) struct Node {
    links: Links<Self>,
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
    /// Creates one for a source in a `FrameArc`.
    pub(super) fn counted(state: FrameArc<StopState>) -> Self {
        let state = ManuallyDrop::new(state);
        // SAFETY: `Onward::release` calls this once, for the reference that was forgotten above.
        let release = |owner: NonNull<()>| drop(unsafe { FrameArc::<StopState>::from_raw(owner) });
        Self { state: NonNull::from(&**state), owner: FrameArc::as_raw(&state), release }
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
        // SAFETY: it exists until it is released, which consumes `self`: `counted` owns a count, and `Children`
        // (in `convoke-sender`), the caller of `in_place`, holds a count of its own until then.
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

// SAFETY: `links` is a field that only the list of callbacks uses.
unsafe impl Linked for Node {
    #[inline]
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

impl Node {
    pub(crate) const fn new(invoke: unsafe fn(NonNull<Node>, StopReason) -> Option<Onward>) -> Self {
        Self { links: Links::new(), invoke }
    }
}

impl StopState {
    pub(crate) fn new(deadline: Option<Instant>) -> Self {
        Self {
            requested: AtomicBool::new(false),
            sources: AtomicU32::new(1),
            callbacks: Lock::new(Callbacks {
                list: IntrusiveList::new(),
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
    ///
    /// # Panics
    /// If there are `MOST_SOURCES`, because clones were forgotten. Nothing is counted then.
    pub(super) fn source_added(&self) {
        if self.sources.fetch_add(1, Ordering::Relaxed) >= MOST_SOURCES {
            self.refuse_source();
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse_source(&self) -> ! {
        self.sources.fetch_sub(1, Ordering::Relaxed);
        panic!("more than {MOST_SOURCES} handles to one stop source: clones were forgotten, not dropped");
    }

    /// Counts a handle less.
    pub(super) fn source_dropped(&self) {
        self.sources.fetch_sub(1, Ordering::Release);
    }

    pub(crate) fn reason(&self) -> Option<StopReason> {
        if self.stop_requested() { self.callbacks.lock().reason } else { None }
    }

    /// Adds a callback. If a stop was requested already, returns the reason, and the caller runs the
    /// callback.
    ///
    /// # Safety
    /// Rule 2 holds for the node, and it is in no list.
    #[inline]
    pub(crate) unsafe fn insert(&self, node: NonNull<Node>) -> Result<(), StopReason> {
        let mut callbacks = self.callbacks.lock();
        if let Some(reason) = callbacks.reason {
            return Err(reason);
        }
        // SAFETY: rule 1: the lock is held. Rule 2: `RawCallback`, the only caller, keeps the node in place
        // until it has removed it, and it is in no list.
        unsafe { callbacks.list.push_front(node) };
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
        if let Some(mut callbacks) = self.callbacks.try_lock() {
            // SAFETY: rule 1: the lock is held. Rule 2: the node exists, and was inserted here: `RawCallback`
            // removes it once, from the state that it has stored.
            if unsafe { callbacks.list.remove(node) } {
                return;
            }
        }
        // SAFETY: the node was inserted here, and is not removed yet: the line above.
        unsafe { self.remove_slowly(node) };
    }

    /// Removes a callback if the lock is contended, or if the callback was taken out to be run.
    ///
    /// # Safety
    /// As for [`remove`](Self::remove).
    #[cold]
    unsafe fn remove_slowly(&self, node: NonNull<Node>) {
        let mut callbacks = self.callbacks.lock();
        // SAFETY: rule 1: the lock is held. Rule 2: the node exists, and was inserted here, as in `remove`.
        if !unsafe { callbacks.list.remove(node) } {
            Self::wait_for_callback(callbacks, node.as_ptr());
        }
    }

    /// Waits until the callback has run, unless this is called from inside it.
    fn wait_for_callback(mut callbacks: Guard<'_, Callbacks>, node: *const Node) {
        if callbacks.running != node {
            return;
        }
        if callbacks.runner == Some(thread::current().id()) {
            // The callback removes itself. The address may be reused by a later node, which must not be taken
            // for it.
            callbacks.running = ptr::null();
            return;
        }
        callbacks.waiting += 1;
        while callbacks.running == node {
            callbacks = callbacks.wait_for_change();
        }
        callbacks.waiting -= 1;
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
                    next.state().callbacks.lock().from = from;
                    below = Some(next);
                } else {
                    release(next, &mut first_panic);
                    state.callback_has_run();
                }
                continue;
            }
            let Some(done) = below.take() else { break };
            below = done.state().callbacks.lock().from.take();
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
        let mut callbacks = self.callbacks.lock();
        if callbacks.reason.is_some() {
            return Begun::Late;
        }
        callbacks.reason = Some(reason);
        self.requested.store(true, Ordering::Release);
        if callbacks.list.is_empty() {
            return Begun::Alone;
        }
        callbacks.runner = Some(thread::current().id());
        Begun::WithCallbacks
    }

    /// Runs callbacks until none is left, or until one passes the request on. That one counts as running
    /// until [`callback_has_run`](Self::callback_has_run) is called.
    fn run_until_passed_on(&self, reason: StopReason, first_panic: &mut Option<Panic>) -> Option<Onward> {
        let mut callbacks = self.callbacks.lock();
        while let Some(node) = callbacks.list.pop_front() {
            callbacks.running = node.as_ptr();
            drop(callbacks);
            // SAFETY: rule 3: this thread took it out of the list, so no other thread runs it, and it is not
            // touched afterwards. Rule 2: it exists, because `remove` waits while `running` is this node.
            match Panic::catch(|| unsafe { (node.as_ref().invoke)(node, reason) }) {
                Ok(None) => {}
                Ok(next) => return next,
                // A second panic is dropped here, outside the lock. Dropping a `Panic` does not unwind.
                Err(panic) => {
                    first_panic.get_or_insert(panic);
                }
            }
            callbacks = self.callback_has_run();
        }
        None
    }

    /// Records that the callback that runs has returned. Returns with the lock held.
    fn callback_has_run(&self) -> Guard<'_, Callbacks> {
        let mut callbacks = self.callbacks.lock();
        callbacks.running = ptr::null();
        if callbacks.waiting > 0 {
            callbacks.changed();
        }
        callbacks
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

impl fmt::Debug for StopState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopState").field("reason", &self.reason()).field("deadline", &self.deadline).finish()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_sources_that_would_overflow_is_refused_and_a_stop_stays_possible() {
        let state = StopState::new(None);
        state.sources.store(u32::MAX / 2, Ordering::Relaxed);
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| state.source_added()));
        assert!(refused.is_err(), "it was counted beyond what there can be");
        assert_eq!(state.sources.load(Ordering::Relaxed), u32::MAX / 2);
        assert!(state.stop_possible());
        state.source_dropped();
        state.source_added();
    }
}
