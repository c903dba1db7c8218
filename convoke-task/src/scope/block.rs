//! The block: the state that a scope shares with its children. It holds their parent link, their list, and
//! the first failure.
//!
//! Rules:
//!
//! 1. The block is alive while a child is in its list. The references to it are those of the scope's future,
//!    of the clones of `Scope`, and, once the future was dropped with children in the list, the block's own
//!    (`BlockState::detached`), which the last child releases.
//! 2. A child touches the block until it has released the lock in `LeavingChild::finish` or `end`, and not
//!    afterwards.
//! 3. `link` and `entry` do not change after `open_in`, and may be read by every thread. `state` is read and
//!    written under its lock. `news` only grows, under that lock, and may be read without it.
//! 4. Every block lies in a `FrameArc`, where `open_in` makes it, and does not move.
//! 5. A task whose ending implements `Attached<O>` is created by `Block::<O>::add` alone, and is in the lists
//!    of that block until it leaves.

#![allow(unsafe_code)]

use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr::NonNull;
use core::task::Waker;
use std::time::Instant;

use convoke_core::env::{Changes, FrameAllocator};
use convoke_core::raw::Frame;
use convoke_core::raw::sync::Arc;
use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};
use convoke_core::{Env, ExecutorRef, Panic, StopReason};

use super::child::{Attach, Attached};
use super::spawn::SpawnError;
use super::start::Refused;
use crate::registry::{Entry, Found, Visit};
use crate::task::{
    Added, Children, Ending, HearsStop, Inside, Leaving, Left, ListOwner, NewTask, Order, ParentLink,
    Spawnable, StopListener, StopWalk, TaskId, Unheard,
};
use crate::task_waits::TaskWaits;
use convoke_core::raw::wake_if_any;
use convoke_core::raw::{FrameArc, OutOfLine, SpinGuard, SpinLock};

pub(crate) struct Block<O> {
    /// The entry in the registry. The first field: it is unlinked before the rest is dropped, so that no
    /// visitor sees a block half dropped.
    entry: Entry,
    /// The parent link of the children.
    pub(crate) link: OutOfLine<ParentLink>,
    /// Hears of a stop of the task that polls the scope's future.
    listener: StopListener,
    /// `NOTHING`, `UNHEARD` or `FAILED`. Can be read without the lock.
    news: AtomicU8,
    pub(super) state: SpinLock<BlockState<O>>,
}

// SAFETY: the fields that do not change are `Sync` (rule 3). An `O` behind the lock crosses threads in two
// ways: a child stores one, and `Scope::spawn` asks for `O: Send`; or the body does, and then the scope's
// future takes or drops it on its own thread, and is `Send` only if its output is.
unsafe impl<O> Sync for Block<O> {}
// SAFETY: `O` is `Send` wherever a value of it crosses threads, as said for `Sync`.
unsafe impl<O> Send for Block<O> {}

/// No child has failed.
const NOTHING: u8 = 0;
/// A child with a handle has panicked: `state.unheard` is set, and may have a panic that no handle heard of.
const UNHEARD: u8 = 1;
/// `state.failure` was set.
const FAILED: u8 = 2;

/// The part of the block that the lock guards. The fields that every child needs come first, on one cache line with the lock: the
/// threads of the children pass that line between them.
#[repr(C)]
pub(super) struct BlockState<O> {
    pub(super) children: Children,
    /// The scope has ended: later spawns are refused.
    ended: bool,
    /// The scope has ended, or was asked to stop: one test for the two that a spawn asks about.
    ending: bool,
    /// The body has ended, and the scope waits for the children alone.
    pub(super) body_ended: bool,
    /// A child stopped because the scope was asked to stop. The body's value may rely on what that child did
    /// not do, so the scope ends as stopped.
    pub(super) cut_short: bool,
    /// The program asked the children to stop, before any other request. Its value does not rely on them.
    stopped_by_program: bool,
    /// The reason of the stop request, if there is one.
    stop: Option<StopReason>,
    /// The waker of the scope's future. Taken when a child fails, or when the last child ends after the body.
    pub(super) waker: Option<Waker>,
    /// The first failure.
    pub(super) failure: Option<Failure<O>>,
    /// An error of the body that counts as a consequence of a stop: a request fails because the task that drives
    /// its connection has stopped first. The scope was stopped, unless a child fails.
    consequence: Option<Failure<O>>,
    /// Panics of children whose handles may be dropped.
    pub(super) unheard: Option<Arc<Unheard>>,
    detached: Option<Detached<O>>,
}

impl<O> BlockState<O> {
    /// Ends the scope: later spawns are refused.
    #[inline]
    pub(super) fn end(&mut self) {
        (self.ended, self.ending) = (true, true);
    }

    /// Returns true if an error of the body counts as a consequence of a stop: the body has heard of a stop from
    /// outside, and that had cut a child short before. An error of a child is no consequence: only its author
    /// knows if it relies on others.
    fn is_consequence(&self, failure: &Failure<O>, heard: bool) -> bool {
        let from_outside = !matches!(self.stop, None | Some(StopReason::Sibling));
        heard && self.cut_short && from_outside && matches!(failure, Failure::Output(_))
    }

    /// Returns true if an error of the body counts as a consequence of a stop, and so as no failure.
    #[inline]
    pub(super) fn has_consequence(&self) -> bool {
        self.consequence.is_some()
    }

    /// Takes the failure, and an error that is outranked by it or by a stop.
    pub(super) fn take_failure(&mut self) -> (Option<Failure<O>>, Option<Failure<O>>) {
        (self.failure.take(), self.consequence.take())
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

/// The references that keep a block and its task alive after the scope's future was dropped. The last child
/// releases them.
struct Detached<O> {
    _block: FrameArc<Block<O>>,
    _task: Option<TaskWaits>,
}

impl<O> Block<O> {
    /// Creates the block of a scope that is opened in this frame. The children run on `executor`, or else on
    /// the executor of the frame. Returns `None` if there is no memory.
    pub(super) fn open(frame: &Frame<'_>, executor: Option<ExecutorRef>) -> Option<FrameArc<Self>> {
        let parent = Inside::of(frame.operation_owner()).map(Inside::id);
        let env_below = || match executor {
            None => frame.child_env(),
            Some(executor) => frame.child_env().with(Changes::new().executor(executor)),
        };
        Self::open_in(frame.allocator(), env_below, frame.deadline(), parent)
    }

    /// Creates the block of a scope whose children have the environment that `env_below` returns, with this
    /// allocator. Returns `None` if there is no memory.
    #[inline]
    pub(super) fn open_in(
        allocator: &FrameAllocator,
        env_below: impl FnOnce() -> Env,
        deadline: Option<Instant>,
        parent: Option<TaskId>,
    ) -> Option<FrameArc<Self>> {
        let block = FrameArc::new(allocator, |block: NonNull<Self>| {
            // SAFETY: rule 1: the block, which does not move, is alive while there is a child under its link.
            let owner = unsafe { ListOwner::new(block.cast(), Self::stop_reason) };
            // Before the rest, which is then written where it stays: this calls code that may unwind.
            let link = OutOfLine::new(ParentLink::new(env_below(), deadline, parent, Some(owner)));
            let state = BlockState {
                children: Children::new(),
                failure: None,
                consequence: None,
                unheard: None,
                stop: None,
                stopped_by_program: false,
                cut_short: false,
                body_ended: false,
                waker: None,
                ended: false,
                ending: false,
                detached: None,
            };
            Self {
                entry: Entry::new(),
                listener: StopListener::new(),
                link,
                news: AtomicU8::new(NOTHING),
                state: SpinLock::new(state),
            }
        })?;
        // SAFETY: rule 4: the block does not move, and its entry is unlinked when it is dropped.
        unsafe { block.entry.link(NonNull::from(&*block)) };
        Some(block)
    }

    /// Returns the reason of the stop request, if there is one.
    ///
    /// # Safety
    /// `block` is the address of a block that has a child in its list.
    unsafe fn stop_reason(block: NonNull<()>) -> Option<StopReason> {
        // SAFETY: rule 1: the block is alive while it has a child.
        unsafe { block.cast::<Self>().as_ref() }.state.lock().stop
    }

    /// Creates a child and adds it to the list: step 1 of the protocol in `mod.rs`. The caller posts it.
    #[inline]
    pub(super) fn add<F, M>(
        &self,
        future: Spawnable<F>,
        ending: M,
        location: &'static Location<'static>,
    ) -> Result<Added<F, M>, SpawnError<F>>
    where
        F: Future,
        M: Ending<F::Output> + Attached<O>,
    {
        if !future.may_run_under(ending.own_link().unwrap_or(&self.link)) {
            return Err(SpawnError::new(future.into_future(), Refused::WrongThread));
        }
        // Before the lock is taken: other threads wait for that.
        // SAFETY: contract 1: the block does not move (rule 4), and is alive while the child is in its list (rule
        // 1); or the child is taken back below. Contract 2: `may_run_under`. Contract 3: the endings of children
        // borrow nothing.
        let child = match unsafe { NewTask::create(future, ending, &self.link, location) } {
            Ok(child) => child,
            Err(future) => return Err(SpawnError::new(future, Refused::NoMemory)),
        };
        let mut state = self.state.lock();
        if state.ending && state.ended {
            drop(state);
            return Err(SpawnError::new(child.take_back(), Refused::Ended));
        }
        // Asked to stop, as it has not ended.
        let stopping = state.ending;
        let child = state.children.add(child, stopping);
        drop(state);
        child.task().ending().attachment().announce(child.task().untyped.id());
        Ok(child)
    }

    /// Wakes the scope's future, or releases a detached block, after the last child was removed. The block
    /// may be freed when this returns.
    #[inline(never)]
    fn after_last(mut state: SpinGuard<'_, BlockState<O>>) {
        let waker = if state.body_ended { state.waker.take() } else { None };
        let detached = state.detached.take();
        drop(state);
        if let Some(detached) = detached {
            // The panic hook has reported a panic of a destructor.
            let _ = Panic::catch(|| drop(detached));
        }
        wake_if_any(waker);
    }

    /// Returns true if a child or the body has failed. Takes no lock, unless a child with a handle has panicked.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        match self.news.load(Ordering::Acquire) {
            NOTHING => false,
            FAILED => true,
            _ => self.check_unheard(&mut self.state.lock()),
        }
    }

    /// Returns true if a child has failed, or one with a handle has panicked. Takes no lock.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.news.load(Ordering::Acquire) != NOTHING
    }

    /// Makes a panic the failure that no handle has heard of, if there is one and no failure. Returns true if
    /// there is a failure.
    #[cold]
    pub(super) fn check_unheard(&self, state: &mut BlockState<O>) -> bool {
        if state.failure.is_none()
            && let Some(panic) = state.unheard.as_ref().and_then(|unheard| unheard.take())
        {
            state.failure = Some(Failure::Panic(panic));
            self.news.store(FAILED, Ordering::Release);
        }
        state.failure.is_some()
    }

    /// Returns where panics go that no handle has heard of. Wakes the scope's future, which leaves its waker
    /// there.
    #[cold]
    pub(super) fn unheard(&self) -> Arc<Unheard> {
        let new = Unheard::new();
        let mut state = self.state.lock();
        let unheard = state.unheard.get_or_insert(new).clone();
        if state.failure.is_none() {
            self.news.store(UNHEARD, Ordering::Release);
        }
        let waker = state.waker.take();
        drop(state);
        wake_if_any(waker);
        unheard
    }

    /// Stores a failure, unless it is the second one, which is dropped. `heard` says that it is the body's, which
    /// was polled with a stop request.
    pub(super) fn fail(&self, failure: Failure<O>, heard: bool) {
        let mut state = self.state.lock();
        if state.failure.is_some() {
            drop(state);
            let _ = Panic::catch(|| drop(failure));
        } else if state.is_consequence(&failure, heard) {
            state.consequence = Some(failure);
        } else {
            state.failure = Some(failure);
            self.news.store(FAILED, Ordering::Release);
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
        let mut walk = StopWalk::new(reason);
        self.ask_below(&mut walk);
        walk.run();
    }

    /// Ends the scope because its future is dropped. Asks the children to stop, and makes the task wait for
    /// them before it ends.
    pub(super) fn abandon(this: FrameArc<Self>, frame: Option<&Frame<'_>>) {
        let failure = {
            let mut state = this.state.lock();
            state.end();
            state.take_failure()
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
        let task = frame.and_then(|frame| Panic::catch(|| TaskWaits::new(frame)).ok());
        let detached = Detached { _block: this.clone(), _task: task };
        let mut state = this.state.lock();
        if !state.children.is_empty() {
            state.detached = Some(detached);
        }
    }
}

// SAFETY: `listener` always borrows the field of that name, which nothing replaces: a `Block` lies behind counted pointers.
unsafe impl<O> HearsStop for Block<O> {
    fn listener(&self) -> &StopListener {
        &self.listener
    }

    fn ask_below(&self, walk: &mut StopWalk) {
        loop {
            let mut state = self.state.lock();
            state.stop.get_or_insert(walk.reason());
            state.ending = true;
            let Some(child) = state.children.next_to_ask() else { return };
            drop(state);
            child.ask(&self.link, walk);
        }
    }
}

impl<O> Visit for Block<O> {
    fn visit(&self, found: &mut Found) {
        let parent = self.link.parent();
        self.state.lock().children.visit(|children, order| match order {
            Order::OldestFirst => children.for_each(|child| found.task(child, parent)),
            Order::NewestFirst => {
                found.reversed(|found| children.for_each(|child| found.task(child, parent)))
            }
        });
    }
}

/// The block of a child that is still in its list, and so alive until the child is removed (rule 1). It is a
/// pointer and no reference, which would have to be valid until the function returns that removes the child.
pub(super) struct BlockOf<'a, O> {
    block: NonNull<Block<O>>,
    _child: PhantomData<&'a ParentLink>,
}

impl<'a, O> BlockOf<'a, O> {
    /// Finds the block by the link of a child that is in the list of a scope with output `O`: the ending of the
    /// child says so.
    #[inline]
    pub(super) fn new(link: &'a ParentLink) -> Self {
        let owner = link.owner().expect("the child of a scope is in its list");
        Self { block: owner.address().cast(), _child: PhantomData }
    }

    /// Returns the block. It is not used after the child was removed.
    #[inline]
    pub(super) fn get(&self) -> &'a Block<O> {
        // SAFETY: rules 1 and 5: the owner of the child's list is a `Block<O>`, and alive until the child is
        // removed.
        unsafe { self.block.as_ref() }
    }
}

/// A child that has ended, while it is still in the list of its scope.
pub(super) struct LeavingChild<'a, O> {
    block: BlockOf<'a, O>,
    child: Leaving<'a>,
}

impl<'a, O> LeavingChild<'a, O> {
    /// Takes a child of a scope with output `O`: the ending of the child says so.
    #[inline]
    pub(super) fn new(child: Leaving<'a>) -> Self {
        Self { block: BlockOf::new(child.parent_link()), child }
    }

    /// Stores a failure of the child in the block, and asks all children to stop.
    pub(super) fn fail_and_stop(&self, failure: Failure<O>) {
        self.block.get().fail(failure, false);
        // If an executor panics here, the child must still be removed: the scope waits for that.
        let _ = Panic::catch(|| self.block.get().stop_children(StopReason::Sibling));
    }

    /// Stores a failure of the child, if it is the first in the scope, and asks the other children to stop: at once, and
    /// not when the scope is polled next. Returns a later failure.
    #[cold]
    fn fail_first(&self, failure: Failure<O>) -> Option<Failure<O>> {
        let block = self.block.get();
        let mut state = block.state.lock();
        if state.failure.is_some() {
            return Some(failure);
        }
        state.failure = Some(failure);
        block.news.store(FAILED, Ordering::Release);
        drop(state);
        // If an executor panics here, the child must still be removed: the scope waits for that.
        let _ = Panic::catch(|| block.stop_children(StopReason::Sibling));
        None
    }

    /// Removes the child under this lock. Returns true if it was the last.
    #[inline(always)]
    fn remove(child: Leaving<'a>, state: &mut BlockState<O>) -> (bool, Left) {
        // SAFETY: rule 5: `finish` and `end` lock the block whose `add` put the child into its lists.
        unsafe { state.children.remove(child) }
    }

    /// Removes a child that has done its part, or whose end only its handle hears of.
    #[inline(always)]
    pub(super) fn finish(self) -> Left {
        let mut state = self.block.get().state.lock();
        let (last, left) = Self::remove(self.child, &mut state);
        // Rule 2: the block is not touched after the lock.
        if last {
            Block::after_last(state);
        }
        left
    }

    /// Removes a child that failed, or was stopped before it did its part.
    #[cold]
    pub(super) fn end(self, end: ChildEnd<O>) -> Left {
        let stopped = matches!(end, ChildEnd::Stopped);
        let (failed, second) = match end {
            ChildEnd::Failed(failure) => (true, self.fail_first(failure)),
            ChildEnd::Stopped => (false, None),
        };
        let mut state = self.block.get().state.lock();
        state.cut_short |= stopped && state.stop.is_some() && !state.stopped_by_program;
        let (last, left) = Self::remove(self.child, &mut state);
        let waker = if failed { state.waker.take() } else { None };
        // Rule 2: the block is not touched after the lock.
        if last {
            Block::after_last(state);
        } else {
            drop(state);
        }
        wake_if_any(waker);
        // The panic hook has reported a second panic. A second error is dropped: a scope has one outcome.
        let _ = Panic::catch(|| drop(second));
        left
    }
}
