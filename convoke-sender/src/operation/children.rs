//! Several children under one parent: counts them, runs `finish` after the last one, and requests stop of all
//! of them.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use convoke_core::Panic;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::{InPlaceStop, OnStop, RawCallback};
use convoke_core::raw::{Onward, WorkRef};
use convoke_core::stop::{StopReason, StopRef};

/// The count of the children of an operation and, once armed, their stop source, which is linked to the
/// parent's.
///
/// 1. The count starts at the number of children plus one. The extra count belongs to the parent's `start`,
///    so that children that complete at once do not free the parent while it still starts others.
/// 2. A thread that requests stop of the children holds a count meanwhile: a child that has failed requests
///    it before it arrives, and the parent's own stop request takes a count for that time, or does nothing if
///    the count is zero. So the stop source is never destroyed while it runs its callbacks.
/// 3. The last one to arrive unlinks from the parent's token and calls `finish`. It is then the only user.
/// 4. A stop callback that panics does not keep a child from arriving. If the parent's request ran the
///    callback, the panic continues there; if a child's did, it is stored for `finish`, see
///    [`take_panic`](Children::take_panic).
pub struct Children {
    counted: AtomicUsize,
    /// Written in `arm`, before any child exists; read-only afterwards.
    armed: UnsafeCell<Option<Armed>>,
}

struct Armed {
    link: RawCallback<StopAll>,
    stop: InPlaceStop,
    /// The owner and the `finish` function that the last one to arrive calls.
    parent: (NonNull<()>, unsafe fn(NonNull<()>)),
    /// Written by the child whose request ran the callbacks, before it arrives; read by `finish`.
    panic: UnsafeCell<Option<Panic>>,
}

/// The callback that passes the parent's stop request on to the children.
struct StopAll {
    children: WorkRef<Children>,
    owner: NonNull<()>,
    finish: unsafe fn(NonNull<()>),
}

// SAFETY: the count is atomic. `armed` is written in `arm`, before any child starts, and read-only
// afterwards; its `panic` has one writer (see `request_stop`), and is read after the count has reached zero.
unsafe impl Sync for Children {}
// SAFETY: the fields have no tie to a thread: `owner` points to an operation, which is `Send`, and the rest
// is owned.
unsafe impl Send for Children {}
// SAFETY: the pointers lead to the operation, which is `Send`, and alive while the callback is registered
// (rule 3).
unsafe impl Send for StopAll {}

impl Children {
    /// Creates the count for `children` children and the parent's own `start`.
    pub fn new(children: usize) -> Self {
        Self { counted: AtomicUsize::new(children + 1), armed: UnsafeCell::new(None) }
    }

    /// Creates the stop source of the children, below `parent`, and returns it. It is not linked yet.
    ///
    /// # Safety
    /// Called at most once, before any child is started, on a pinned `Children`.
    pub unsafe fn arm(
        &self,
        parent: StopRef<'_>,
        owner: NonNull<()>,
        finish: unsafe fn(NonNull<()>),
    ) -> NonNull<InPlaceStop> {
        // SAFETY: no child has started, so this thread is the only user. Rule 3: the callback is removed before the
        // operation ends, and removal waits for a call that runs.
        let (armed, children) = unsafe { (&mut *self.armed.get(), WorkRef::new(NonNull::from(self))) };
        let call = StopAll { children, owner, finish };
        let armed = armed.insert(Armed {
            link: RawCallback::new(call),
            stop: InPlaceStop::new(parent.deadline()),
            parent: (owner, finish),
            panic: UnsafeCell::new(None),
        });
        NonNull::from(&armed.stop)
    }

    /// Returns the stop source, if there is one.
    #[inline]
    fn armed(&self) -> Option<&Armed> {
        // SAFETY: written in `arm`, before any child exists, and read-only since.
        unsafe { (*self.armed.get_const()).as_ref() }
    }

    /// Links the stop source to the parent's token: from now on the children stop with the parent.
    ///
    /// # Safety
    /// After `arm`, by the parent's `start` while it holds its count; `parent` outlives the operation.
    pub unsafe fn link(&self, parent: StopRef<'_>) {
        if let Some(armed) = self.armed() {
            // SAFETY: `self` is pinned, and `arrive` removes the callback before the operation ends (rule 3).
            unsafe { armed.link.register(parent) };
        }
    }

    /// Requests stop of the children, if there is a stop source. The caller holds a count (rule 2). Does not
    /// panic (rule 4).
    pub fn request_stop(&self, reason: StopReason) {
        let Some(armed) = self.armed() else { return };
        if let Err(panic) = Panic::catch(|| armed.stop.request_stop(reason)) {
            // SAFETY: only the first request runs callbacks, so this is the only writer; `finish` waits
            // for the count that rule 2 requires of the child that calls this.
            unsafe { *armed.panic.get() = Some(panic) };
        }
    }

    /// Takes the panic of a stop callback that a child's request ran, if any. It is part of the parent's
    /// outcome.
    ///
    /// # Safety
    /// Called by `finish`.
    pub unsafe fn take_panic(&self) -> Option<Panic> {
        // SAFETY: rule 3: `finish` is the only user.
        self.armed().and_then(|armed| unsafe { (*armed.panic.get()).take() })
    }

    /// Gives back one count; the last one calls `finish(owner)`, which may free `this`. Takes a pointer,
    /// because a reference would have to stay valid until the function returns.
    ///
    /// # Safety
    /// The caller holds a count, and touches nothing of the operation afterwards.
    #[inline]
    pub unsafe fn arrive(this: NonNull<Self>, owner: NonNull<()>, finish: unsafe fn(NonNull<()>)) {
        // SAFETY: rule 1: the count that the caller holds keeps the operation alive until it is given back.
        // Rule 3: the last one keeps it alive until it calls `finish`, and touches nothing afterwards. `link`
        // returned before `start` gave back its count. A stop request that runs right now on another thread
        // finds the count at zero and returns: waiting for it is short.
        unsafe {
            let children = this.as_ref();
            if children.counted.fetch_sub(1, Ordering::AcqRel) == 1 {
                if let Some(armed) = children.armed() {
                    armed.link.remove();
                }
                finish(owner);
            }
        }
    }

    /// Takes a count, and returns false if the count is zero already.
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

/// A count that a stop request from above takes (rule 2). It is given back when this is dropped.
struct Held(StopAll);

impl Held {
    /// Returns the children, which this count keeps alive: rules 1 and 2.
    fn children(&self) -> &Children {
        &self.0.children
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: rule 2: `StopAll::hold` took this count, and it is given back once. Nothing is touched
        // afterwards.
        unsafe { Children::arrive(self.0.children.pointer(), self.0.owner, self.0.finish) };
    }
}

impl StopAll {
    /// Takes a count, and returns `None` if the count is zero already.
    fn hold(self) -> Option<Held> {
        self.children.hold().then(|| Held(self))
    }

    /// Gives back the count that `pass_on` took.
    ///
    /// # Safety
    /// Called once, with the address of armed `Children` of which the caller has a count.
    unsafe fn release(children: NonNull<()>) {
        // SAFETY: rule 2: the count that `pass_on` took keeps the operation alive.
        let children = unsafe { WorkRef::new(children.cast::<Children>()) };
        let parent = children.armed().map(|armed| armed.parent);
        if let Some((owner, finish)) = parent {
            drop(Held(Self { children, owner, finish }));
        }
    }
}

impl OnStop for StopAll {
    fn on_stop(self, reason: StopReason) {
        let Some(held) = self.hold() else { return };
        let stopped = match held.children().armed() {
            Some(armed) => Panic::catch(|| armed.stop.request_stop(reason)),
            None => Ok(false),
        };
        drop(held);
        if let Err(panic) = stopped {
            panic.resume();
        }
    }

    fn pass_on(self, _: StopReason) -> Option<Onward> {
        let held = self.hold()?;
        let stop = NonNull::from(&held.children().armed()?.stop);
        // Not dropped: `release` gives the count back.
        let children = ManuallyDrop::new(held).0.children;
        // SAFETY: rule 2: the count keeps the operation, and its stop source, alive until `release` gives it
        // back, once.
        Some(unsafe { Onward::in_place(stop.as_ref(), children.pointer().cast(), Self::release) })
    }
}

impl fmt::Debug for Children {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Children")
            .field("counted", &self.counted.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}
