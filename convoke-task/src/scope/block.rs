//! What a scope and its children share: the place that the children hang in, their list, and what has come of them.
//!
//! 1. The block is kept by the scope's future, by handles, and, once the future was dropped with children running, by itself
//!    (`kept`) until the last child has come home.
//! 2. A child looks at the block until it has given back the lock in `child_came_home` or `child_ended`, and not afterwards.

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
    /// First, so that a task's place is its block.
    pub(crate) place: ParentLink,
    /// Before the rest: nobody looks any more when that is dropped.
    entry: Entry,
    env: Env,
    /// Whether there is a failure, for a look without the lock.
    failed: AtomicBool,
    pub(super) state: SpinLock<State<O>>,
}

// SAFETY: the environment is `Sync`; what is behind the lock is `Send` where it is put there: see `Scope::spawn`, which asks
// for that of the children's output, and the future, which is `Send` only if the body's output is.
unsafe impl<O> Sync for Block<O> {}
// SAFETY: as above.
unsafe impl<O> Send for Block<O> {}

/// In this order: what is needed for every child first, on one cache line with the lock. Threads pass that line to and fro.
#[repr(C)]
pub(super) struct State<O> {
    pub(super) children: Children,
    /// Nothing is started any more.
    pub(super) ended: bool,
    /// The body has ended, and the scope waits for the children alone.
    pub(super) body_ended: bool,
    /// A child was stopped after it was asked to, not by the program: then the body's value is not what it says.
    pub(super) cut_short: bool,
    /// The program itself was the first to ask: then its value does not count on them.
    dismissed: bool,
    /// Why the children are asked to stop, if they are.
    pub(super) stop: Option<StopReason>,
    /// Of the scope. Taken when a child fails, or the last one ends after the body.
    pub(super) waker: Option<Waker>,
    /// The first failure.
    pub(super) failure: Option<Failure<O>>,
    kept: Option<Kept<O>>,
}

/// How a child has ended that has not come home with its part done.
pub(crate) enum ChildEnd<O> {
    /// By the stopped door, with its part undone.
    Stopped,
    /// The scope fails with it.
    Failed(Failure<O>),
}

/// How a child, or the body, has failed.
pub(crate) enum Failure<O> {
    /// With an error: then this is what the scope returns.
    Output(O),
    /// With a panic.
    Panic(Panic),
}

/// What is let go when the last child of a scope that was dropped comes home.
struct Kept<O> {
    _block: FrameArc<Block<O>>,
    memory: Option<AdoptedMemory>,
}

impl<O> Block<O> {
    /// The block of a scope that is opened in this frame, for children on another executor if it is said. `None` if there is
    /// no memory.
    pub(super) fn open(frame: &Frame<'_>, executor: Option<ExecutorRef>) -> Option<FrameArc<Self>> {
        let parent = Inside::of(frame.operation_owner()).map(Inside::task);
        let env_above = frame.operation_owner().env();
        let env_below = match executor {
            None => env_above.child(),
            Some(executor) => env_above.child().with(Changes::new().executor(executor)),
        };
        Self::open_in(env_below, frame.deadline(), parent)
    }

    /// The block of a scope whose children have this environment. `None` if there is no memory.
    pub(super) fn open_in(
        env_below: Env,
        deadline: Option<Instant>,
        parent: Option<NonNull<TaskHeader>>,
    ) -> Option<FrameArc<Self>> {
        let allocator = env_below.allocator().clone();
        let home = ParentLink::home_of(&env_below);
        let block = FrameArc::new(&allocator, |block: NonNull<Self>| {
            // SAFETY: the address is that of a field of what is made here, and does not move.
            let env = unsafe { NonNull::new_unchecked(&raw mut (*block.as_ptr()).env) };
            // SAFETY: the environment is beside it; `reason` may be called for as long as there are tasks: rule 1.
            let place = unsafe { ParentLink::new(env, home, deadline, parent, Self::reason) };
            let state = State {
                children: Children::new(),
                failure: None,
                stop: None,
                dismissed: false,
                cut_short: false,
                body_ended: false,
                waker: None,
                ended: false,
                kept: None,
            };
            Self {
                place,
                entry: Entry::new(),
                env: env_below,
                failed: AtomicBool::new(false),
                state: SpinLock::new(state),
            }
        })?;
        // SAFETY: the block does not move, and unlinks the entry when it is dropped. Nobody holds a lock.
        unsafe { block.entry.link(NonNull::from(&*block).cast(), Self::look) };
        Some(block)
    }

    /// Tells of the children.
    ///
    /// # Safety
    /// `block` is one of this type, and there.
    unsafe fn look(block: NonNull<()>, found: &mut Found) {
        // SAFETY: the caller's.
        let block = unsafe { block.cast::<Self>().as_ref() };
        block.state.lock().children.look(found, block.place.parent);
    }

    /// # Safety
    /// The place is that of a block, with tasks in it.
    unsafe fn reason(place: NonNull<ParentLink>) -> Option<StopReason> {
        // SAFETY: the place is the first field (`repr(C)`).
        unsafe { place.cast::<Self>().as_ref() }.state.lock().stop
    }

    /// A child has ended, and there is nothing else to say about it. Says whether `stop_children` may have referred to it.
    ///
    /// # Safety
    /// The child was added to the list of this block, and this is said once. The block may be gone when this returns.
    #[inline]
    pub(super) unsafe fn child_came_home(block: NonNull<Self>, child: NonNull<TaskHeader>) -> Known {
        // SAFETY: the caller's; rules 1 and 2.
        unsafe {
            let mut state = block.as_ref().state.lock();
            let (last, known) = state.children.remove(child);
            if last {
                Self::after_last(state);
            }
            known
        }
    }

    /// A child has ended, and has failed, or was stopped before it could do its part. Says whether `stop_children` may have
    /// referred to it.
    ///
    /// # Safety
    /// As for `child_came_home`.
    #[cold]
    pub(super) unsafe fn child_ended(
        block: NonNull<Self>,
        child: NonNull<TaskHeader>,
        end: ChildEnd<O>,
    ) -> Known {
        let stopped = matches!(end, ChildEnd::Stopped);
        let failure = if let ChildEnd::Failed(failure) = end { Some(failure) } else { None };
        // SAFETY: rules 1 and 2.
        let mut state = unsafe { block.as_ref() }.state.lock();
        state.cut_short |= stopped && state.stop.is_some() && !state.dismissed;
        let failed = failure.is_some();
        let second = match (&state.failure, failure) {
            (None, Some(failure)) => {
                state.failure = Some(failure);
                // SAFETY: as above.
                unsafe { block.as_ref() }.failed.store(true, Ordering::Release);
                None
            }
            (_, second) => second,
        };
        // SAFETY: the caller's.
        let (last, known) = unsafe { state.children.remove(child) };
        let waker = if failed { state.waker.take() } else { None };
        if last {
            Self::after_last(state);
        } else {
            drop(state);
        }
        wake_if_any(waker);
        // The panic hook has told of a second panic; a second error is of no use to anybody.
        let _ = Panic::catch(|| drop(second));
        known
    }

    /// The last child is gone. Nobody looks at the block when this returns.
    #[inline(never)]
    fn after_last(mut state: SpinGuard<'_, State<O>>) {
        let waker = if state.body_ended { state.waker.take() } else { None };
        let kept = state.kept.take();
        drop(state);
        if let Some(kept) = kept {
            kept.let_go();
        }
        wake_if_any(waker);
    }

    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// The body has failed.
    pub(super) fn fail(&self, failure: Failure<O>) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            state.failure = Some(failure);
            self.failed.store(true, Ordering::Release);
        } else {
            drop(state);
            let _ = Panic::catch(|| drop(failure));
        }
    }

    /// The same as [`stop_children`](Block::stop_children), by the program: it does without them.
    pub(super) fn dismiss_children(&self, reason: StopReason) {
        let mut state = self.state.lock();
        state.dismissed |= state.stop.is_none();
        drop(state);
        self.stop_children(reason);
    }

    /// Asks all children to stop, those that are there and those that come.
    pub(super) fn stop_children(&self, reason: StopReason) {
        loop {
            let mut state = self.state.lock();
            state.stop.get_or_insert(reason);
            let Some(child) = state.children.next_to_ask() else { return };
            // SAFETY: the child is in the list, and so has not left; the reference keeps it when the lock is given back. Its place
            // is this block's, or lies in itself.
            unsafe {
                TaskHeader::add_reference(child);
                let place = NonNull::from(child.as_ref().parent_link());
                drop(state);
                TaskHeader::ask_stop_in(child, place);
                drop_reference(child);
            }
        }
    }

    /// The scope's future is dropped: its children are asked to stop, and the task waits for them before it ends.
    pub(super) fn abandon(this: FrameArc<Self>, frame: Option<&Frame<'_>>) {
        let failure = {
            let mut state = this.state.lock();
            state.ended = true;
            state.failure.take()
        };
        // Here, where the future is: an output of the body need not be `Send`, and may borrow, while the block may go elsewhere
        // and later. What children fail with from now on is `Send` and `'static`, by `Scope::spawn`.
        let _ = Panic::catch(|| drop(failure));
        this.stop_children(StopReason::Abandoned);
        if this.state.lock().children.is_empty() {
            return;
        }
        // Without memory for an operation the task cannot wait; its children still need the block.
        let room = core::alloc::Layout::new::<u8>();
        let memory = frame.and_then(|frame| Panic::catch(|| frame.operation_owner().adopt(room)).ok());
        let kept = Kept { _block: this.clone(), memory };
        let mut state = this.state.lock();
        if state.children.is_empty() {
            drop(state);
            kept.let_go();
        } else {
            state.kept = Some(kept);
        }
    }
}

impl<O> Kept<O> {
    fn let_go(self) {
        let memory = self.memory;
        // What a second failure's destructor throws has been reported by the panic hook; the owner is told nevertheless.
        let _ = Panic::catch(|| drop(self));
        if let Some(memory) = memory {
            // SAFETY: it was received by the host, and its memory was never used.
            unsafe { OwnerRef::release(memory) };
        }
    }
}
