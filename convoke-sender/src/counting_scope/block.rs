//! Spawned work in one allocation: its operation, its environment, its stop source and its association with
//! the scope. `spawn.rs` and `spawn_future.rs` decide what happens to its outcome.
//!
//! 1. The block is counted: by the work until it completes, by the consumer of its result, and by a stop
//!    request while it is passed on. The last one to drop its count frees the block.
//! 2. `link` and `linked_env` are written before the work starts and read-only afterwards. A stop request
//!    that comes through the link when the count is zero already does nothing; the block is not freed before
//!    that request has read the count.
//! 3. `work` and `association` belong to the thread that starts the work until it has started, then to the
//!    completion of the work, then to the thread that frees the block.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::env::{Changes, FrameAllocator};
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::{InPlaceStop, OnStop, RawCallback, ScopedEnv, Slot};
use convoke_core::{Env, Panic, StopReason, StopToken};

use super::shared::Association;
use convoke_core::raw::report_panic;

/// The handling of the outcome of spawned work.
pub(super) trait Ending<S: Sender>: Send + Sized + 'static {
    /// True if the work has its own stop source even in an environment that never stops.
    const OWN_STOP: bool;

    /// Takes the outcome, when the work has completed and its operation is destroyed.
    fn ended(block: Counted<S, Self>, outcome: OutcomeOf<S>);
}

/// Spawned work, in memory of its frame allocator.
pub(super) struct Block<S: Sender, K: Ending<S>> {
    count: AtomicUsize,
    // First, so that it is dropped before what it points to.
    link: UnsafeCell<Option<Link>>,
    /// `env` with the stop source of the link, if there is a link. Written together with it.
    linked_env: UnsafeCell<Option<ScopedEnv>>,
    work: Slot<S::Operation<WorkReceiver<S, K>>>,
    env: Env,
    association: UnsafeCell<Option<Association>>,
    allocator: ManuallyDrop<FrameAllocator>,
    pub(super) ending: K,
}

/// The work's own stop source, which stops with the scope and with the environment that it was spawned in.
struct Link {
    // Before the source: stop requests come through these.
    with_scope: RawCallback<Forward>,
    with_env: RawCallback<Forward>,
    stop: InPlaceStop,
    scope: StopToken,
}

/// A counted pointer to a block.
pub(super) struct Counted<S: Sender, K: Ending<S>> {
    block: NonNull<Block<S, K>>,
}

// SAFETY: everything in a block is `Send`, and rules 1 to 3 say which thread uses what when.
unsafe impl<S: Sender, K: Ending<S>> Send for Counted<S, K> {}
// SAFETY: a shared `Counted` gives access to the block only by rules 1 to 3, and the count is atomic.
unsafe impl<S: Sender, K: Ending<S>> Sync for Counted<S, K> {}

impl<S: Sender + 'static, K: Ending<S>> Counted<S, K> {
    /// Allocates a block for work that starts in `env` and also stops with `scope`. Returns its arguments if
    /// there is no memory.
    pub(super) fn new(
        env: &Env,
        scope: &StopToken,
        association: Association,
        ending: K,
    ) -> Result<Self, (Association, K)> {
        // All code that may panic, which is clones of the program's types, runs before there is memory to
        // leak.
        let has_link = K::OWN_STOP || env.stop().stop_possible();
        let allocator = env.allocator().clone();
        let env = match has_link {
            true => env.child(),
            false => env.child().with(Changes::new().stop_token(scope.clone())),
        };
        let Some(memory) = allocator.allocate(Layout::new::<Block<S, K>>()) else {
            return Err((association, ending));
        };
        let block = memory.cast::<Block<S, K>>();
        let value = Block {
            count: AtomicUsize::new(1),
            link: UnsafeCell::new(None),
            linked_env: UnsafeCell::new(None),
            work: Slot::new(),
            env,
            association: UnsafeCell::new(Some(association)),
            allocator: ManuallyDrop::new(allocator),
            ending,
        };
        // SAFETY: the memory is ours, and was allocated with the layout of a block.
        unsafe { block.write(value) };
        if has_link {
            // SAFETY: the block is not shared yet.
            unsafe { Self::link(block, scope.clone()) };
        }
        Ok(Self { block })
    }

    /// Creates the link.
    ///
    /// # Safety
    /// Called once, before the block is shared.
    unsafe fn link(block: NonNull<Block<S, K>>, scope: StopToken) {
        let forward = || RawCallback::new(Forward { block: block.cast(), pass_on: Self::pass_on });
        // SAFETY: rule 2. The block does not move, drops the callbacks before what they point to, and stores
        // both tokens. The environment is in the block and not changed.
        unsafe {
            let Block { link, linked_env, env, .. } = block.as_ref();
            let deadline = [scope.deadline(), env.stop().deadline()].into_iter().flatten().min();
            let stop = InPlaceStop::new(deadline);
            *link.get() = Some(Link { with_scope: forward(), with_env: forward(), stop, scope });
            let Some(link) = &*link.get_const() else { return };
            *linked_env.get() = Some(ScopedEnv::with_in_place_stop(env, NonNull::from(&link.stop)));
            link.with_scope.register(link.scope.as_ref());
            link.with_env.register(env.stop());
        }
    }

    /// Starts the work, which takes over the count. The block may be freed by the time this returns.
    pub(super) fn start(self, sender: S) {
        let block = self.block;
        // SAFETY: rule 3: nothing has started yet. The block does not move, and lives until the work has
        // completed, because the receiver counts it.
        unsafe {
            let work = NonNull::from(&(*block.as_ptr()).work);
            Slot::run(work, || sender.connect(WorkReceiver { block: self }));
        };
    }

    /// Takes the association, which the caller drops as its last step.
    ///
    /// # Safety
    /// Called by the completion of the work (rule 3).
    pub(super) unsafe fn take_association(&self) -> Option<Association> {
        // SAFETY: rule 3: the caller is the completion of the work.
        self.association.with_mut(|association| unsafe { (*association).take() })
    }

    /// Reports a panic to the scope.
    ///
    /// # Safety
    /// Called by the completion of the work (rule 3).
    pub(super) unsafe fn panicked(&self, panic: Panic) {
        // SAFETY: rule 3: the caller is the completion of the work.
        self.association.with(|association| match unsafe { &*association } {
            Some(association) => association.panicked(panic),
            None => report_panic(panic),
        });
    }

    /// Asks the work to stop, if it has its own stop source. Returns the panic of a stop callback, if one
    /// panics.
    pub(super) fn request_stop(&self, reason: StopReason) -> Result<(), Panic> {
        // SAFETY: rule 2: the link is read-only.
        match unsafe { &*self.link.get_const() } {
            Some(link) => Panic::catch(|| link.stop.request_stop(reason)).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Passes on a stop request that came through the link.
    ///
    /// # Safety
    /// The memory of the block is not freed yet; its count may be zero.
    unsafe fn pass_on(block: NonNull<()>, reason: StopReason) -> Result<(), Panic> {
        // SAFETY: the caller promises that the memory is there; a count keeps it there for longer.
        match unsafe { Self::hold_unless_ended(block.cast()) } {
            Some(block) => block.request_stop(reason),
            None => Ok(()),
        }
    }
}

impl<S: Sender, K: Ending<S>> Counted<S, K> {
    /// Takes a count, unless it is zero already.
    ///
    /// # Safety
    /// The memory of the block is not freed yet.
    unsafe fn hold_unless_ended(block: NonNull<Block<S, K>>) -> Option<Self> {
        // SAFETY: the caller promises that the memory is there.
        let count = unsafe { &(*block.as_ptr()).count };
        let mut now = count.load(Ordering::Relaxed);
        while now > 0 {
            match count.compare_exchange_weak(now, now + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Self { block }),
                Err(other) => now = other,
            }
        }
        None
    }

    /// Turns the counted pointer into an address, without giving up the count.
    pub(super) fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).block.cast()
    }

    /// Turns an address from `into_raw` back into a counted pointer.
    ///
    /// # Safety
    /// `block` came from `into_raw` of this type, and the caller owns its count.
    pub(super) unsafe fn from_raw(block: NonNull<()>) -> Self {
        Self { block: block.cast() }
    }

    /// Destroys the block and frees its memory.
    ///
    /// # Safety
    /// Called by the last one to drop its count (rule 1).
    unsafe fn free(block: NonNull<Block<S, K>>) {
        let block = block.as_ptr();
        // SAFETY: rule 1: the count is zero, so this is the only user. Only stop requests that find the count
        // at zero may still read it; dropping the link waits for them, and the memory stays until then.
        unsafe {
            let association = (*block).association.with_mut(|association| (*association).take());
            let allocator = ManuallyDrop::take(&mut (*block).allocator);
            // Caught, because values of the program are dropped with the environment.
            if let Err(panic) = Panic::catch(|| block.drop_in_place()) {
                match &association {
                    Some(association) => association.panicked(panic),
                    None => report_panic(panic),
                }
            }
            allocator.deallocate(NonNull::new_unchecked(block).cast(), Layout::new::<Block<S, K>>());
            // Last: now nothing is left of the work.
            drop(association);
        }
    }
}

impl<S: Sender, K: Ending<S>> Clone for Counted<S, K> {
    fn clone(&self) -> Self {
        // Relaxed: the caller has a count.
        self.count.fetch_add(1, Ordering::Relaxed);
        Self { block: self.block }
    }
}

impl<S: Sender, K: Ending<S>> Drop for Counted<S, K> {
    fn drop(&mut self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: rule 1: this was the last count.
            unsafe { Self::free(self.block) };
        }
    }
}

impl<S: Sender, K: Ending<S>> Deref for Counted<S, K> {
    type Target = Block<S, K>;

    fn deref(&self) -> &Block<S, K> {
        // SAFETY: rule 1: `self` has a count.
        unsafe { self.block.as_ref() }
    }
}

/// The stop callback that passes a request on into a block.
struct Forward {
    block: NonNull<()>,
    pass_on: unsafe fn(NonNull<()>, StopReason) -> Result<(), Panic>,
}

// SAFETY: the block may be used from any thread, by its rules.
unsafe impl Send for Forward {}

impl OnStop for Forward {
    fn on_stop(self, reason: StopReason) {
        // SAFETY: rule 2: the callback is removed before the memory is freed, and removal waits for this
        // call.
        if let Err(panic) = unsafe { (self.pass_on)(self.block, reason) } {
            panic.resume();
        }
    }
}

/// The receiver of spawned work. It counts the block.
pub(super) struct WorkReceiver<S: Sender, K: Ending<S>> {
    block: Counted<S, K>,
}

#[diagnostic::do_not_recommend]
impl<S: Sender, K: Ending<S>> Receiver<S::Value, S::Error> for WorkReceiver<S, K> {
    fn complete(self, outcome: OutcomeOf<S>) {
        // SAFETY: rule 3: the work has completed, and this is its completion.
        let outcome = unsafe { self.block.work.clear_after(outcome) };
        K::ended(self.block, outcome);
    }

    fn env(&self) -> &Env {
        // SAFETY: rule 2: `linked_env` is read-only.
        unsafe { (*self.block.linked_env.get_const()).as_deref() }.unwrap_or(&self.block.env)
    }
}
