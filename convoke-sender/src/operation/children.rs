//! Several children under one parent: who is the last to come home, and how all of them are asked to stop.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;

use convoke_core::Panic;
use convoke_core::raw::Onward;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::{InPlaceStop, OnStop, RawCallback};
use convoke_core::stop::{StopReason, StopRef};

/// Counts the children of an operation and, if it is armed, holds their stop source, linked to the parent's.
///
/// 1. The count starts at the number of children plus one; that one belongs to the parent's `start`, so that
///    children which complete at once do not end the parent under its own feet.
/// 2. Whoever asks the children to stop holds a count while he does it: a child that has failed asks before it
///    arrives, and the parent's own stop request takes a count for the time, or, if all are home, does nothing.
///    So the stop source is never destroyed while it runs its callbacks.
/// 3. The last to arrive unlinks from the parent's token and calls `finish`. Nobody else touches anything then.
/// 4. A callback that panics keeps nobody from coming home. If the parent's request ran it, the panic goes on there; if
///    a child's did, it is kept for `finish`, see [`take_panic`](Children::take_panic).
pub struct Children {
    counted: AtomicUsize,
    /// Written in `arm`, before any child exists; read-only afterwards.
    armed: UnsafeCell<Option<Armed>>,
}

struct Armed {
    link: RawCallback<StopAll>,
    stop: InPlaceStop,
    /// What the last to arrive calls.
    parent: (NonNull<()>, unsafe fn(NonNull<()>)),
    /// Written by the one whose request ran the callbacks, before it arrives; read by `finish`.
    panic: UnsafeCell<Option<Panic>>,
}

/// The parent's stop request, passed on to the children.
struct StopAll {
    children: NonNull<Children>,
    owner: NonNull<()>,
    finish: unsafe fn(NonNull<()>),
}

// SAFETY: `Children` is shared between the threads of its children by design; `armed` is written before they start.
unsafe impl Sync for Children {}
// SAFETY: as above.
unsafe impl Send for Children {}
// SAFETY: the pointers lead to the operation, which is `Send` and alive while the callback is registered.
unsafe impl Send for StopAll {}

impl Children {
    /// For this many children, and the parent's own `start`.
    pub fn new(children: usize) -> Self {
        Self { counted: AtomicUsize::new(children + 1), armed: UnsafeCell::new(None) }
    }

    /// Makes the stop source of the children, below `parent`, and returns it. It is not linked yet.
    ///
    /// # Safety
    /// Called at most once, before any child is started, on a pinned `Children`.
    pub unsafe fn arm(
        &self,
        parent: StopRef<'_>,
        owner: NonNull<()>,
        finish: unsafe fn(NonNull<()>),
    ) -> NonNull<InPlaceStop> {
        let call = StopAll { children: NonNull::from(self), owner, finish };
        // SAFETY: no child exists yet, so nobody else looks.
        let armed = unsafe { &mut *self.armed.get() };
        let armed = armed.insert(Armed {
            link: RawCallback::new(call),
            stop: InPlaceStop::new(parent.deadline()),
            parent: (owner, finish),
            panic: UnsafeCell::new(None),
        });
        NonNull::from(&armed.stop)
    }

    /// Links the stop source to the parent's token: from now on the children stop with the parent.
    ///
    /// # Safety
    /// After `arm`, by the parent's `start` while it holds its count; `parent` outlives the operation.
    pub unsafe fn link(&self, parent: StopRef<'_>) {
        // SAFETY: written in `arm`, by this thread.
        if let Some(armed) = unsafe { &*self.armed.get_const() } {
            // SAFETY: we are pinned, and `arrive` removes the callback before the operation ends.
            unsafe { armed.link.register(parent) };
        }
    }

    /// Asks the children to stop, if there is a stop source. The caller holds a count (rule 2). Does not panic (rule 4).
    pub fn request_stop(&self, reason: StopReason) {
        // SAFETY: written in `arm`, before the children started; the caller is one of them.
        let Some(armed) = (unsafe { &*self.armed.get_const() }) else { return };
        if let Err(panic) = Panic::catch(|| armed.stop.request_stop(reason)) {
            // SAFETY: the first request alone runs callbacks, so nobody else writes; `finish` waits for our count.
            unsafe { *armed.panic.get() = Some(panic) };
        }
    }

    /// The panic of a stop callback that a child's request ran, if there was one: part of the parent's outcome.
    ///
    /// # Safety
    /// Called by `finish`.
    pub unsafe fn take_panic(&self) -> Option<Panic> {
        // SAFETY: rule 3: we are alone.
        unsafe { (*self.armed.get_const()).as_ref().and_then(|armed| (*armed.panic.get()).take()) }
    }

    /// Gives back one count; the last one calls `finish(owner)`, which may free `this`. That is why this takes a pointer
    /// and not a reference, which would have to stay valid until the function returns.
    ///
    /// # Safety
    /// The caller holds a count, and touches nothing of the operation afterwards.
    #[inline]
    pub unsafe fn arrive(this: NonNull<Self>, owner: NonNull<()>, finish: unsafe fn(NonNull<()>)) {
        // SAFETY: the count that the caller holds keeps it alive.
        if unsafe { this.as_ref() }.counted.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: rule 3: we are the last, so nobody has destroyed it yet; `arm` happened before us.
            if let Some(armed) = unsafe { &*this.as_ref().armed.get_const() } {
                // SAFETY: `link` returned before `start` gave back its count. A request that runs just now on another
                // thread finds the count at zero and leaves: waiting for it is short.
                unsafe { armed.link.remove() };
            }
            // SAFETY: rule 3: we are the last. Nothing is touched afterwards.
            unsafe { finish(owner) };
        }
    }

    /// Takes a count, unless all are home already.
    fn hold(&self) -> bool {
        let mut count = self.counted.load(Ordering::Relaxed);
        while count > 0 {
            match self.counted.compare_exchange_weak(count, count + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }
}

impl OnStop for StopAll {
    fn on_stop(self, reason: StopReason) {
        // SAFETY: the callback is removed before the operation ends, and removal waits for us; if we are what ends
        // it, that is the last thing we do.
        let stopped = unsafe {
            let children = self.children.as_ref();
            if !children.hold() {
                return;
            }
            let stopped = match &*children.armed.get_const() {
                Some(armed) => Panic::catch(|| armed.stop.request_stop(reason)),
                None => Ok(false),
            };
            Children::arrive(self.children, self.owner, self.finish);
            stopped
        };
        if let Err(panic) = stopped {
            panic.resume();
        }
    }

    fn pass_on(self, _: StopReason) -> Option<Onward> {
        // SAFETY: the callback is removed before the operation ends, and removal waits for us. From then on the count
        // that we take keeps the operation, and the stop source in it, alive until it is given back.
        unsafe {
            let children = self.children.as_ref();
            if !children.hold() {
                return None;
            }
            let Some(armed) = &*children.armed.get_const() else {
                Children::arrive(self.children, self.owner, self.finish);
                return None;
            };
            Some(Onward::in_place(&armed.stop, self.children.cast(), Self::release))
        }
    }
}

impl StopAll {
    /// Gives back the count that `pass_on` took.
    ///
    /// # Safety
    /// Called once, with the address of armed `Children` of which the caller has a count.
    unsafe fn release(children: NonNull<()>) {
        let children = children.cast::<Children>();
        // SAFETY: the count keeps it alive. `parent` was written in `arm`, before any child was started.
        unsafe {
            let parent = (*children.as_ref().armed.get_const()).as_ref().map(|armed| armed.parent);
            if let Some((owner, finish)) = parent {
                Children::arrive(children, owner, finish);
            }
        }
    }
}

impl fmt::Debug for Children {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Children")
            .field("counted", &self.counted.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}
