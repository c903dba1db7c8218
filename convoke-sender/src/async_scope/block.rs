//! Spawned work in one allocation: its operation, its environment, its stop source and its association with
//! the scope. `spawn.rs` and `spawn_future.rs` decide what happens to its outcome.
//!
//! 1. The block is counted ([`Counted`]): by the work until it completes, by the consumer of its result, and
//!    by a stop request while it is passed on. The last one to drop its count frees the block.
//! 2. `linked` is written before the block is shared, and read-only afterwards. A stop request that comes
//!    through the link when the count is zero already does nothing; the block is not freed before that
//!    request has read the count.
//! 3. `work` and `association` belong to the thread that starts the work until it has started, then to the
//!    completion of the work ([`Ended`]), then to the thread that frees the block.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::env::{Changes, FrameAllocator};
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::{InPlaceStop, OnStop, RawCallback, ScopedEnv, Slot, report_panic};
use convoke_core::{Env, Panic, StopReason, StopToken};

use super::{Association, leave, report_to};

/// The handling of the outcome of spawned work.
pub(super) trait Ending<S: Sender, A: Association>: Send + Sized + 'static {
    /// True if the work has its own stop source even in an environment that never stops.
    const OWN_STOP: bool;

    /// Takes the outcome, when the work has completed and its operation is destroyed.
    fn ended(work: Ended<S, A, Self>, outcome: OutcomeOf<S>);
}

/// The environment of work that is spawned, with the allocator of its block.
pub(super) struct SpawnEnv(Env);

impl SpawnEnv {
    /// Chooses the environment and the allocator of a sender: see [`spawn`](super::spawn()).
    pub(super) fn of<S: Sender>(env: Option<&Env>, sender: &S) -> Self {
        let env = env.map_or_else(Env::new, Env::child);
        match sender.allocator() {
            Some(own) if *env.allocator() == FrameAllocator::default() => {
                Self(env.with(Changes::new().allocator(own.clone())))
            }
            _ => Self(env),
        }
    }
}

/// Spawned work, in memory of its frame allocator.
pub(super) struct Block<S: Sender, A: Association, K: Ending<S, A>> {
    head: Head,
    // First, so that it is dropped before what it points to.
    linked: UnsafeCell<Option<Linked>>,
    work: Slot<S::Operation<WorkReceiver<S, A, K>>>,
    env: Env,
    association: UnsafeCell<Option<A>>,
    allocator: ManuallyDrop<FrameAllocator>,
    pub(super) ending: K,
}

/// The count of a block, and the function that frees it.
pub(super) struct Head {
    count: AtomicUsize,
    free: unsafe fn(NonNull<()>),
}

/// The work's own stop source, which stops with the scope and with the environment that it was spawned in,
/// and the environment with it.
struct Linked {
    // Before the source: stop requests come through these.
    with_scope: RawCallback<Forward>,
    with_env: RawCallback<Forward>,
    /// Set when the address of the source is known.
    env: Option<ScopedEnv>,
    stop: InPlaceStop,
    scope: StopToken,
}

/// A block whose type may be erased.
pub(super) trait AnyBlock {
    /// Returns the count.
    fn head(&self) -> &Head;

    /// Asks the work to stop, if it has its own stop source. Returns the panic of a stop callback, if one
    /// panics.
    fn request_stop(&self, reason: StopReason) -> Result<(), Panic>;
}

/// A counted pointer to a block (rule 1).
pub(super) struct Counted<B: AnyBlock + ?Sized>(NonNull<B>);

// SAFETY: everything in a block is `Send`, and rules 1 to 3 say which thread uses what when.
unsafe impl<B: AnyBlock + ?Sized> Send for Counted<B> {}
// SAFETY: a shared `Counted` gives access to the block only by rules 1 to 3, and the count is atomic.
unsafe impl<B: AnyBlock + ?Sized> Sync for Counted<B> {}

impl<S: Sender + 'static, A: Association, K: Ending<S, A>> Counted<Block<S, A, K>> {
    /// Allocates a block for work that starts in an environment and also stops with `scope`. Returns its
    /// arguments if there is no memory.
    pub(super) fn new(around: SpawnEnv, scope: StopToken, association: A, ending: K) -> Result<Self, (A, K)> {
        // All code that may panic, which is clones of the program's types, runs before there is memory to
        // leak.
        let SpawnEnv(env) = around;
        let allocator = env.allocator().clone();
        let has_link = K::OWN_STOP || env.stop().stop_possible();
        let env = match has_link {
            true => env,
            false => env.with(Changes::new().stop_token(scope.clone())),
        };
        let Some(memory) = allocator.allocate(Layout::new::<Block<S, A, K>>()) else {
            return Err((association, ending));
        };
        let block = memory.cast::<Block<S, A, K>>();
        let value = Block {
            head: Head { count: AtomicUsize::new(1), free: Block::<S, A, K>::free },
            linked: UnsafeCell::new(None),
            work: Slot::new(),
            env,
            association: UnsafeCell::new(Some(association)),
            allocator: ManuallyDrop::new(allocator),
            ending,
        };
        // SAFETY: the allocator has just returned the memory, above, for the layout of this block, and nothing else has its
        // address.
        unsafe { block.write(value) };
        let this = Self(block);
        if has_link {
            this.link(scope);
        }
        Ok(this)
    }

    /// Creates the link. Called by `new`, before the block is shared.
    fn link(&self, scope: StopToken) {
        let forward = || RawCallback::new(Forward { block: Weak(self.0) });
        let deadline = [scope.deadline(), self.env.stop().deadline()].into_iter().flatten().min();
        // SAFETY: rule 2: `new` is the only user of the block. It does not move, and drops the callbacks and
        // the scoped environment before the stop source, both tokens and the environment that they borrow.
        unsafe {
            let linked = (*self.linked.get()).insert(Linked {
                with_scope: forward(),
                with_env: forward(),
                env: None,
                stop: InPlaceStop::new(deadline),
                scope,
            });
            linked.env = Some(ScopedEnv::with_in_place_stop(&self.env, NonNull::from(&linked.stop)));
            linked.with_scope.register(linked.scope.as_ref());
            linked.with_env.register(self.env.stop());
        }
    }

    /// Starts the work, which takes over the count. The block may be freed by the time this returns.
    pub(super) fn start(self, sender: S) {
        let work = NonNull::from(&self.work);
        // SAFETY: rule 3: nothing has started yet. The block does not move, and lives until the work has
        // completed, because the receiver counts it.
        unsafe { Slot::run(work, || sender.connect(WorkReceiver { block: self })) };
    }
}

impl<S: Sender, A: Association, K: Ending<S, A>> Block<S, A, K> {
    fn linked(&self) -> Option<&Linked> {
        // SAFETY: rule 2: written before the block was shared, and read-only since.
        unsafe { (*self.linked.get_const()).as_ref() }
    }

    /// Destroys the block and frees its memory.
    ///
    /// # Safety
    /// Called by the last one to drop its count (rule 1), with the address of a block of this type.
    unsafe fn free(block: NonNull<()>) {
        let block = block.cast::<Self>().as_ptr();
        // SAFETY: rule 1: the count is zero, so this is the only user. Only stop requests that find the count
        // at zero may still read it; dropping the link waits for them, and the memory stays until then.
        unsafe {
            let association = (*block).association.with_mut(|association| (*association).take());
            let allocator = ManuallyDrop::take(&mut (*block).allocator);
            // Caught, because values of the program are dropped with the environment.
            if let Err(panic) = Panic::catch(|| block.drop_in_place()) {
                match &association {
                    Some(association) => report_to(association, panic),
                    None => report_panic(panic),
                }
            }
            allocator.deallocate(NonNull::new_unchecked(block).cast(), Layout::new::<Self>());
            drop(allocator);
            // Last: now nothing is left of the work.
            if let Some(association) = association {
                leave(association);
            }
        }
    }
}

impl<S: Sender, A: Association, K: Ending<S, A>> AnyBlock for Block<S, A, K> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn request_stop(&self, reason: StopReason) -> Result<(), Panic> {
        match self.linked() {
            Some(linked) => Panic::catch(|| linked.stop.request_stop(reason)).map(|_| ()),
            None => Ok(()),
        }
    }
}

impl<B: AnyBlock + ?Sized> Counted<B> {
    /// Erases the type of the block, by a coercion of the pointer.
    pub(super) fn erase<T>(self, coerce: impl FnOnce(NonNull<B>) -> NonNull<T>) -> Counted<T>
    where
        T: AnyBlock + ?Sized,
    {
        let block = ManuallyDrop::new(self).0;
        let erased = coerce(block);
        assert_eq!(erased.cast::<()>(), block.cast(), "a coercion returns the pointer that it was given");
        Counted(erased)
    }
}

impl<B: AnyBlock + ?Sized> Clone for Counted<B> {
    fn clone(&self) -> Self {
        // Relaxed: the caller has a count.
        self.head().count.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl<B: AnyBlock + ?Sized> Drop for Counted<B> {
    fn drop(&mut self) {
        let Head { count, free } = self.head();
        let free = *free;
        if count.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: rule 1: this was the last count, and `free` is the function for the type of this block.
            unsafe { free(self.0.cast()) };
        }
    }
}

impl<B: AnyBlock + ?Sized> Deref for Counted<B> {
    type Target = B;

    fn deref(&self) -> &B {
        // SAFETY: rule 1: `self` has a count.
        unsafe { self.0.as_ref() }
    }
}

/// The address of a block whose memory is not freed yet, but whose count may be zero (rule 2).
struct Weak(NonNull<dyn AnyBlock>);

impl Weak {
    /// Takes a count, unless it is zero already.
    fn hold(&self) -> Option<Counted<dyn AnyBlock>> {
        // SAFETY: rule 2: only the callbacks of the link have this address, and they are removed, which waits
        // for them to return, before the memory is freed.
        let count = unsafe { &self.0.as_ref().head().count };
        let mut now = count.load(Ordering::Relaxed);
        while now > 0 {
            match count.compare_exchange_weak(now, now + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Counted(self.0)),
                Err(other) => now = other,
            }
        }
        None
    }
}

/// The stop callback that passes a request on into a block.
struct Forward {
    block: Weak,
}

// SAFETY: it uses the block through `Weak::hold` alone, which counts in an atomic word, and the counted reference that it
// gets is `Send`.
unsafe impl Send for Forward {}

impl OnStop for Forward {
    fn on_stop(self, reason: StopReason) {
        let stopped = self.block.hold().map_or(Ok(()), |block| block.request_stop(reason));
        if let Err(panic) = stopped {
            panic.resume();
        }
    }
}

/// The receiver of spawned work. It counts the block.
pub(super) struct WorkReceiver<S: Sender, A: Association, K: Ending<S, A>> {
    block: Counted<Block<S, A, K>>,
}

#[diagnostic::do_not_recommend]
impl<S: Sender, A: Association, K: Ending<S, A>> Receiver<S::Value, S::Error> for WorkReceiver<S, A, K> {
    fn complete(self, outcome: OutcomeOf<S>) {
        // SAFETY: rule 3: the work has completed, and this is its completion.
        let outcome = unsafe { self.block.work.clear_after(outcome) };
        K::ended(Ended(self.block), outcome);
    }

    fn env(&self) -> &Env {
        self.block.linked().and_then(|linked| linked.env.as_deref()).unwrap_or(&self.block.env)
    }
}

/// The completion of spawned work: a count, and the right to the association (rule 3).
pub(super) struct Ended<S: Sender, A: Association, K: Ending<S, A>>(Counted<Block<S, A, K>>);

impl<S: Sender, A: Association, K: Ending<S, A>> Ended<S, A, K> {
    fn association(&mut self) -> &mut Option<A> {
        // SAFETY: rule 3: `WorkReceiver::complete`, which runs once, makes the only `Ended` of a block.
        unsafe { &mut *self.0.association.get() }
    }

    /// Takes the association, which the caller drops as its last step.
    pub(super) fn take_association(&mut self) -> Option<A> {
        self.association().take()
    }

    /// Reports a panic to the scope.
    pub(super) fn panicked(&mut self, panic: Panic) {
        match self.association() {
            Some(association) => report_to(association, panic),
            None => report_panic(panic),
        }
    }

    /// Returns the block.
    pub(super) fn block(&self) -> &Block<S, A, K> {
        &self.0
    }
}
