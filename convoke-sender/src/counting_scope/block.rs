//! Spawned work in one allocation: its operation, its environment, its stop source, its place in the scope. What becomes
//! of its outcome is for `spawn.rs` and `spawn_future.rs` to say.
//!
//! 1. The block is counted: by the work until it completes, by whoever waits for a result, and by a stop request for
//!    the time it is passed on. The last to let go frees it.
//! 2. `link` and `linked_env` are written before the work is started and only read afterwards. A request that comes through it when
//!    the count is zero already does nothing; the block is not freed before it has looked.
//! 3. `work` and `association` are used by who starts the work until it is started, then by who completes it, then by
//!    who frees the block.

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

/// What becomes of the outcome of spawned work.
pub(super) trait Ending<S: Sender>: Send + Sized + 'static {
    /// Whether the work has a stop source of its own, even in an environment that never stops.
    const OWN_STOP: bool;

    /// The work has completed, and its operation is destroyed.
    fn ended(block: Counted<S, Self>, outcome: OutcomeOf<S>);
}

/// Spawned work.
pub(super) struct Block<S: Sender, K: Ending<S>> {
    count: AtomicUsize,
    // Before what it leads to.
    link: UnsafeCell<Option<Link>>,
    /// `env` with the stop source of the link, if there is one. Written with that.
    linked_env: UnsafeCell<Option<ScopedEnv>>,
    work: Slot<S::Operation<WorkReceiver<S, K>>>,
    env: Env,
    association: UnsafeCell<Option<Association>>,
    allocator: ManuallyDrop<FrameAllocator>,
    pub(super) ending: K,
}

/// A stop source of the work's own, which stops with the scope and with the environment it was spawned in.
struct Link {
    // Before the source: who passes a request on comes through these.
    with_scope: RawCallback<Forward>,
    with_env: RawCallback<Forward>,
    stop: InPlaceStop,
    scope: StopToken,
}

/// A counted pointer to a block.
pub(super) struct Counted<S: Sender, K: Ending<S>> {
    block: NonNull<Block<S, K>>,
}

// SAFETY: all that is in a block is `Send`, and the rules say who uses what when.
unsafe impl<S: Sender, K: Ending<S>> Send for Counted<S, K> {}
// SAFETY: as above.
unsafe impl<S: Sender, K: Ending<S>> Sync for Counted<S, K> {}

impl<S: Sender + 'static, K: Ending<S>> Counted<S, K> {
    /// Room for work that is started in `env` and stops with `scope` too. Gives back what it was given if there is no
    /// memory.
    pub(super) fn new(
        env: &Env,
        scope: &StopToken,
        association: Association,
        ending: K,
    ) -> Result<Self, (Association, K)> {
        // All that may panic, the program's clones, before there is memory to lose.
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
        // SAFETY: the memory is ours and fits.
        unsafe { block.write(value) };
        if has_link {
            // SAFETY: nobody else knows the block yet.
            unsafe { Self::link(block, scope.clone()) };
        }
        Ok(Self { block })
    }

    /// # Safety
    /// Called once, before the block is shared.
    unsafe fn link(block: NonNull<Block<S, K>>, scope: StopToken) {
        let forward = || RawCallback::new(Forward { block: block.cast(), pass_on: Self::pass_on });
        // SAFETY: rule 2. The block does not move, and frees the callbacks before what they lead to; it keeps both
        // tokens. The environment is in the block and not changed.
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

    /// Starts the work, which now has the count. The block may be gone afterwards.
    pub(super) fn start(self, sender: S) {
        let block = self.block;
        // SAFETY: rule 3: nothing was started yet. The block does not move, and lives until the work has completed,
        // for the receiver counts it.
        unsafe {
            let work = NonNull::from(&(*block.as_ptr()).work);
            Slot::run(work, || sender.connect(WorkReceiver { block: self }));
        };
    }

    /// Takes the association, to be ended when there is nothing more to do.
    ///
    /// # Safety
    /// Rule 3: by who completes the work.
    pub(super) unsafe fn take_association(&self) -> Option<Association> {
        // SAFETY: the caller's.
        self.association.with_mut(|association| unsafe { (*association).take() })
    }

    /// Gives a panic to the scope.
    ///
    /// # Safety
    /// Rule 3: by who completes the work.
    pub(super) unsafe fn panicked(&self, panic: Panic) {
        // SAFETY: the caller's.
        self.association.with(|association| match unsafe { &*association } {
            Some(association) => association.panicked(panic),
            None => report_panic(panic),
        });
    }

    /// Asks the work to stop, if it has a stop source of its own. The panic is that of a callback.
    pub(super) fn request_stop(&self, reason: StopReason) -> Result<(), Panic> {
        // SAFETY: rule 2.
        match unsafe { &*self.link.get_const() } {
            Some(link) => Panic::catch(|| link.stop.request_stop(reason)).map(|_| ()),
            None => Ok(()),
        }
    }

    /// A request that came through the link.
    ///
    /// # Safety
    /// `block` is one whose memory is there; it may have come to its end.
    unsafe fn pass_on(block: NonNull<()>, reason: StopReason) -> Result<(), Panic> {
        // SAFETY: the caller's; if we get a count, it lives for longer.
        match unsafe { Self::hold_unless_ended(block.cast()) } {
            Some(block) => block.request_stop(reason),
            None => Ok(()),
        }
    }
}

impl<S: Sender, K: Ending<S>> Counted<S, K> {
    /// # Safety
    /// The memory of the block is there.
    unsafe fn hold_unless_ended(block: NonNull<Block<S, K>>) -> Option<Self> {
        // SAFETY: the caller's.
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

    /// Gives the count up for the address.
    pub(super) fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).block.cast()
    }

    /// Takes back what `into_raw` gave.
    ///
    /// # Safety
    /// `block` came from `into_raw` of this type, and its count is the caller's.
    pub(super) unsafe fn from_raw(block: NonNull<()>) -> Self {
        Self { block: block.cast() }
    }

    /// # Safety
    /// Rule 1: by the last to let go.
    unsafe fn free(block: NonNull<Block<S, K>>) {
        let block = block.as_ptr();
        // SAFETY: rule 1: we are alone. Only requests that find the count at zero may still look at it; dropping the
        // link waits for them, and the memory stays until then.
        unsafe {
            let association = (*block).association.with_mut(|association| (*association).take());
            let allocator = ManuallyDrop::take(&mut (*block).allocator);
            // Values of the program's go with the environment.
            if let Err(panic) = Panic::catch(|| block.drop_in_place()) {
                match &association {
                    Some(association) => association.panicked(panic),
                    None => report_panic(panic),
                }
            }
            allocator.deallocate(NonNull::new_unchecked(block).cast(), Layout::new::<Block<S, K>>());
            // Now there is nothing left of the work.
            drop(association);
        }
    }
}

impl<S: Sender, K: Ending<S>> Clone for Counted<S, K> {
    fn clone(&self) -> Self {
        // Relaxed: who clones has a count.
        self.count.fetch_add(1, Ordering::Relaxed);
        Self { block: self.block }
    }
}

impl<S: Sender, K: Ending<S>> Drop for Counted<S, K> {
    fn drop(&mut self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: ours was the last count.
            unsafe { Self::free(self.block) };
        }
    }
}

impl<S: Sender, K: Ending<S>> Deref for Counted<S, K> {
    type Target = Block<S, K>;

    fn deref(&self) -> &Block<S, K> {
        // SAFETY: rule 1: we count it.
        unsafe { self.block.as_ref() }
    }
}

/// Passes a stop request on into a block.
struct Forward {
    block: NonNull<()>,
    pass_on: unsafe fn(NonNull<()>, StopReason) -> Result<(), Panic>,
}

// SAFETY: the block may be used from any thread.
unsafe impl Send for Forward {}

impl OnStop for Forward {
    fn on_stop(self, reason: StopReason) {
        // SAFETY: rule 2: the callback is taken out before the memory is given back.
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
        // SAFETY: rule 3: the work has completed, and it is we who complete it.
        let outcome = unsafe { self.block.work.clear_after(outcome) };
        K::ended(self.block, outcome);
    }

    fn env(&self) -> &Env {
        // SAFETY: rule 2.
        unsafe { (*self.block.linked_env.get_const()).as_deref() }.unwrap_or(&self.block.env)
    }
}
