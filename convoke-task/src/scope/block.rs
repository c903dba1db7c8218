//! The block: the state that a scope shares with its children. It holds their parent link, their list, and
//! the first failure.
//!
//! Rules:
//!
//! 1. The block is alive while a child is in its list. The references to it are those of the scope's future,
//!    of the clones of `Scope`, and, once the future was dropped with children in the list, the block's own
//!    (`State::detached`), which the last child releases.
//! 2. A child touches the block until it has released the lock in `child_finished` or `child_ended`, and not
//!    afterwards.
//! 3. `link`, `entry` and `env` do not change after `open_in`, and may be read by every thread. `state` is
//!    read and written under its lock. `failed` only changes from false to true, under that lock, and may be
//!    read without it.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::task::Waker;
use std::time::Instant;

use convoke_core::env::Changes;
use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::{AdoptedMemory, Frame, OwnerRef};
use convoke_core::{Env, ExecutorRef, Panic, StopReason};

use super::children::Children;
use crate::frame_arc::FrameArc;
use crate::registry::{Entry, Found};
use crate::task::{Inside, Known, ParentLink, TaskHeader, drop_reference};
use convoke_core::raw::wake_if_any;
use convoke_core::raw::{SpinGuard, SpinLock};

#[repr(C)]
pub(crate) struct Block<O> {
    /// The parent link of the children. The first field, so that a pointer to it is a pointer to the block.
    pub(crate) link: ParentLink,
    /// The entry in the registry. It is unlinked before the rest is dropped, so that no visitor sees a block
    /// half dropped.
    entry: Entry,
    env: Env,
    /// True if `state.failure` was set. Can be read without the lock.
    failed: AtomicBool,
    pub(super) state: SpinLock<State<O>>,
}

// SAFETY: the fields that do not change are `Sync` (rule 3). An `O` behind the lock crosses threads in two
// ways: a child stores one, and `Scope::spawn` asks for `O: Send`; or the body does, and then the scope's
// future takes or drops it on its own thread, and is `Send` only if its output is.
unsafe impl<O> Sync for Block<O> {}
// SAFETY: as for `Sync`: `O` is `Send` wherever a value of it crosses threads.
unsafe impl<O> Send for Block<O> {}

/// What the lock guards. The fields that every child needs come first, on one cache line with the lock: the
/// threads of the children pass that line between them.
#[repr(C)]
pub(super) struct State<O> {
    pub(super) children: Children,
    /// The scope has ended: later spawns are refused.
    pub(super) ended: bool,
    /// The body has ended, and the scope waits for the children alone.
    pub(super) body_ended: bool,
    /// A child stopped because the scope was asked to stop. The body's value may rely on what that child did
    /// not do, so the scope ends as stopped.
    pub(super) cut_short: bool,
    /// The program asked the children to stop, before any other request. Its value does not rely on them.
    stopped_by_program: bool,
    /// The reason of the stop request, if there is one.
    pub(super) stop: Option<StopReason>,
    /// The waker of the scope's future. Taken when a child fails, or when the last child ends after the body.
    pub(super) waker: Option<Waker>,
    /// The first failure.
    pub(super) failure: Option<Failure<O>>,
    /// The failure is an error of the body, and came after a stop from outside had cut a child short: it counts
    /// as a consequence of the stop. An error of a child does not: only its author knows if it relies on others.
    failed_by_stop: bool,
    detached: Option<Detached<O>>,
}

impl<O> State<O> {
    /// Stores the first failure, which is the body's.
    fn store_failure_of_body(&mut self, failure: Failure<O>) {
        let from_outside = !matches!(self.stop, None | Some(StopReason::Sibling));
        self.failed_by_stop = self.cut_short && from_outside && matches!(failure, Failure::Output(_));
        self.failure = Some(failure);
    }

    /// Takes the failure. It comes second in the pair if it is only the consequence of a stop that has cut a
    /// child short: a request fails because the task that drives its connection has stopped first. Then the
    /// scope was stopped.
    pub(super) fn take_failure(&mut self) -> (Option<Failure<O>>, Option<Failure<O>>) {
        let failure = self.failure.take();
        if self.failed_by_stop { (None, failure) } else { (failure, None) }
    }
}

/// The end of a child that did not do its part.
pub(crate) enum ChildEnd<O> {
    /// It was stopped.
    Stopped,
    /// It failed, and the scope fails with it.
    Failed(Failure<O>),
}

/// The failure of a child or of the body.
pub(crate) enum Failure<O> {
    /// An `Err` or `None`: the output of the scope.
    Output(O),
    /// A panic.
    Panic(Panic),
}

/// What keeps a block and its task alive after the scope's future was dropped. The last child releases it.
struct Detached<O> {
    _block: FrameArc<Block<O>>,
    memory: Option<AdoptedMemory>,
}

impl<O> Block<O> {
    /// Creates the block of a scope that is opened in this frame. The children run on `executor`, or else on
    /// the executor of the frame. Returns `None` if there is no memory.
    pub(super) fn open(frame: &Frame<'_>, executor: Option<ExecutorRef>) -> Option<FrameArc<Self>> {
        let parent = Inside::of(frame.operation_owner()).map(Inside::task);
        let env_above = frame.operation_owner().env();
        let env_below = match executor {
            None => env_above.child(),
            Some(executor) => env_above.child().with(Changes::new().executor(executor)),
        };
        Self::open_in(env_below, frame.deadline(), parent)
    }

    /// Creates the block of a scope whose children have this environment. Returns `None` if there is no memory.
    pub(super) fn open_in(
        env_below: Env,
        deadline: Option<Instant>,
        parent: Option<NonNull<TaskHeader>>,
    ) -> Option<FrameArc<Self>> {
        let allocator = env_below.allocator().clone();
        let owner = ParentLink::home_of(&env_below);
        let block = FrameArc::new(&allocator, |block: NonNull<Self>| {
            // SAFETY: `block` points to the memory of this block, which does not move; so the field's address
            // is not null.
            let env = unsafe { NonNull::new_unchecked(&raw mut (*block.as_ptr()).env) };
            // SAFETY: the environment is in the same block as the link. `reason` reads the block, which is
            // alive while there are tasks with this link: rule 1.
            let link = unsafe { ParentLink::new(env, owner, deadline, parent, Self::reason) };
            let state = State {
                children: Children::new(),
                failure: None,
                failed_by_stop: false,
                stop: None,
                stopped_by_program: false,
                cut_short: false,
                body_ended: false,
                waker: None,
                ended: false,
                detached: None,
            };
            Self {
                link,
                entry: Entry::new(),
                env: env_below,
                failed: AtomicBool::new(false),
                state: SpinLock::new(state),
            }
        })?;
        // SAFETY: the block does not move, and its entry is unlinked when it is dropped. This thread holds no
        // lock here.
        unsafe { block.entry.link(NonNull::from(&*block).cast(), Self::visit) };
        Some(block)
    }

    /// Adds the children to what a visitor of the registry has found.
    ///
    /// # Safety
    /// `block` points to a live `Block<O>`.
    unsafe fn visit(block: NonNull<()>, found: &mut Found) {
        // SAFETY: `open_in` registered this function with a pointer to a `Block<O>`; the caller says that it
        // is alive.
        let block = unsafe { block.cast::<Self>().as_ref() };
        block.state.lock().children.visit(found, block.link.parent);
    }

    /// Returns the reason of the stop request, if there is one.
    ///
    /// # Safety
    /// `link` is the link of a `Block<O>` that has a child in its list.
    unsafe fn reason(link: NonNull<ParentLink>) -> Option<StopReason> {
        // SAFETY: the link is the first field (`repr(C)`), and rule 1: the block is alive while it has a child.
        unsafe { link.cast::<Self>().as_ref() }.state.lock().stop
    }

    /// Removes a child that has done its part, or whose end only its handle hears of. Returns if
    /// `stop_children` may have taken a reference to it.
    ///
    /// # Safety
    /// The child is in the list of this block, and calls this or `child_ended` once. The block may be freed
    /// when this returns.
    #[inline]
    pub(super) unsafe fn child_finished(block: NonNull<Self>, child: NonNull<TaskHeader>) -> Known {
        // SAFETY: rule 1: the block is alive, for the child is in its list; and it is not touched after the
        // lock, rule 2.
        unsafe {
            let mut state = block.as_ref().state.lock();
            let (last, known) = state.children.remove(child);
            if last {
                Self::after_last(state);
            }
            known
        }
    }

    /// Removes a child that failed, or was stopped before it did its part. Returns if `stop_children` may
    /// have taken a reference to it.
    ///
    /// # Safety
    /// The child is in the list of this block, and calls this or `child_finished` once. The block may be
    /// freed when this returns.
    #[cold]
    pub(super) unsafe fn child_ended(
        block: NonNull<Self>,
        child: NonNull<TaskHeader>,
        end: ChildEnd<O>,
    ) -> Known {
        let stopped = matches!(end, ChildEnd::Stopped);
        let failure = if let ChildEnd::Failed(failure) = end { Some(failure) } else { None };
        // SAFETY: rule 1: the child is in the list until `remove` below, under this lock.
        let mut state = unsafe { block.as_ref() }.state.lock();
        state.cut_short |= stopped && state.stop.is_some() && !state.stopped_by_program;
        let failed = failure.is_some();
        let second = match (&state.failure, failure) {
            (None, Some(failure)) => {
                state.failure = Some(failure);
                // SAFETY: rule 1: the child is still in the list.
                unsafe { block.as_ref() }.failed.store(true, Ordering::Release);
                None
            }
            (_, second) => second,
        };
        // SAFETY: the caller says that the child is in this list, and calls once.
        let (last, known) = unsafe { state.children.remove(child) };
        let waker = if failed { state.waker.take() } else { None };
        if last {
            Self::after_last(state);
        } else {
            drop(state);
        }
        wake_if_any(waker);
        // The panic hook has reported a second panic. A second error is dropped: a scope has one outcome.
        let _ = Panic::catch(|| drop(second));
        known
    }

    /// Wakes the scope's future, or releases a detached block, after the last child was removed. The block
    /// may be freed when this returns.
    #[inline(never)]
    fn after_last(mut state: SpinGuard<'_, State<O>>) {
        let waker = if state.body_ended { state.waker.take() } else { None };
        let detached = state.detached.take();
        drop(state);
        if let Some(detached) = detached {
            detached.release();
        }
        wake_if_any(waker);
    }

    /// Returns true if a child or the body has failed. Takes no lock.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Stores a failure, unless it is the second one, which is dropped.
    pub(super) fn fail(&self, failure: Failure<O>) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            state.store_failure_of_body(failure);
            self.failed.store(true, Ordering::Release);
        } else {
            drop(state);
            let _ = Panic::catch(|| drop(failure));
        }
    }

    /// Asks all children to stop because the program says so. Unlike after
    /// [`stop_children`](Block::stop_children), a child that stops does not turn the body's value into a
    /// stop.
    pub(super) fn stop_children_by_program(&self, reason: StopReason) {
        let mut state = self.state.lock();
        state.stopped_by_program |= state.stop.is_none();
        drop(state);
        self.stop_children(reason);
    }

    /// Asks all children to stop, also those that are started later.
    pub(super) fn stop_children(&self, reason: StopReason) {
        loop {
            let mut state = self.state.lock();
            state.stop.get_or_insert(reason);
            let Some(child) = state.children.next_to_ask() else { return };
            // SAFETY: the child is in the list, so its memory is alive. The reference keeps that alive after
            // the lock is released. Its parent link is in this block, which the caller borrows, or in the
            // child itself.
            unsafe {
                TaskHeader::add_reference(child);
                let link = NonNull::from(child.as_ref().parent_link());
                drop(state);
                TaskHeader::ask_stop_in(child, link);
                drop_reference(child);
            }
        }
    }

    /// Ends the scope because its future is dropped. Asks the children to stop, and makes the task wait for
    /// them before it ends.
    pub(super) fn abandon(this: FrameArc<Self>, frame: Option<&Frame<'_>>) {
        let failure = {
            let mut state = this.state.lock();
            state.ended = true;
            state.failure.take()
        };
        // Dropped here, on the thread of the future: an output of the body need not be `Send`, and may
        // borrow, while the block may be freed later on another thread. Failures of children from now on are
        // `Send` and `'static`: `Scope::spawn`.
        let _ = Panic::catch(|| drop(failure));
        this.stop_children(StopReason::Abandoned);
        if this.state.lock().children.is_empty() {
            return;
        }
        // Without memory for an operation the task cannot wait. Its children need the block nevertheless.
        let layout = core::alloc::Layout::new::<u8>();
        let memory = frame.and_then(|frame| Panic::catch(|| frame.operation_owner().adopt(layout)).ok());
        let detached = Detached { _block: this.clone(), memory };
        let mut state = this.state.lock();
        if state.children.is_empty() {
            drop(state);
            detached.release();
        } else {
            state.detached = Some(detached);
        }
    }
}

impl<O> Detached<O> {
    /// Drops the reference to the block, and tells the task that it need not wait any longer.
    fn release(self) {
        let memory = self.memory;
        // The panic hook has reported a panic of a destructor. The operation is released in any case: the
        // task waits for it.
        let _ = Panic::catch(|| drop(self));
        if let Some(memory) = memory {
            // SAFETY: `abandon` got the memory from `adopt`, and stored nothing in it. It is released once:
            // `release` takes `self`.
            unsafe { OwnerRef::release(memory) };
        }
    }
}
