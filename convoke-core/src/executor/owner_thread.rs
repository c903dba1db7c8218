//! The owner of tasks that belong to one thread at a time. An executor that runs all its work on one thread
//! has one. The thread that has entered it changes the state of its tasks by plain loads and stores. Other
//! threads send a remote wake, which that thread runs.
//!
//! 1. At most one thread has entered an owner at a time. [`OwnerThread::enter`] requires that of its caller.
//! 2. After an owner is closed, only its acting thread enters it (`closed.rs`).
//! 3. The header is posted by the thread that sends the first wake to an empty list, and not again before it
//!    was called. The posted header holds a count of `SharedOwner`: an executor may drop the handle that the owner
//!    came from before it runs the work it was given.

#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::closed::{ActingOwner, Exclusive};
use super::{Call, Header, Runnable, WorkKind};
use crate::Panic;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, thread_mark};
use crate::this_thread::{Polling, ThisThread};

/// The number of an owner. Zero stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerId(u32);

impl OwnerId {
    /// No owner.
    pub const NONE: Self = Self(0);

    /// The owner of no task: differs from that of every task, also of one that has [none](Self::NONE).
    pub const NOBODY: Self = Self(u32::MAX);

    /// Returns the plain number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns true if this thread may act for an owner that is closed, and so on another thread than the
    /// owner's own.
    #[inline]
    pub fn here_may_be_closed() -> bool {
        Polling::here(Polling::is_in_closed)
    }

    /// Makes this thread act for the owner. Returns the one it acted for before.
    #[inline]
    fn enter(self) -> Self {
        ThisThread::with(|thread| Self(thread.owner.replace(self.0)))
    }

    /// Returns the owner that this thread acts for, or [`NONE`](Self::NONE).
    #[inline]
    pub fn here() -> Self {
        ThisThread::with(|thread| Self(thread.owner.get()))
    }
}

/// The owner of all tasks of an executor that runs its work on one thread at a time.
pub struct OwnerThread {
    id: OwnerId,
    shared: Arc<SharedOwner>,
}

/// The part of an owner that its posted header keeps alive.
#[repr(C)]
pub(super) struct SharedOwner {
    /// First, so that its address is that of the whole. Not a cell of a model, which has other fields first.
    header: UnsafeCell<Header>,
    id: OwnerId,
    closed: AtomicBool,
    /// The mark of the thread that created it: work that must not leave its thread is destroyed there or not
    /// at all.
    thread: u64,
    wakes: Mutex<Wakes>,
}

struct Wakes {
    list: Vec<RemoteWake>,
    posted: bool,
}

/// A call that the owner thread makes on behalf of another thread.
#[derive(Clone, Copy)]
pub struct RemoteWake {
    target: NonNull<()>,
    run: unsafe fn(NonNull<()>),
}

// SAFETY: rule 3: the header is posted once at a time, and its link belongs to the holder of the runnable.
// The other fields are immutable, atomic or behind a mutex.
unsafe impl Sync for SharedOwner {}
// SAFETY: no field is bound to a thread. Rule 1 is about the threads that enter, and not about the one that
// holds this.
unsafe impl Send for SharedOwner {}
// SAFETY: it is sent to the owner thread, and run there: the tasks that call `OwnerThread::send` hold a count
// for it.
unsafe impl Send for RemoteWake {}

/// Proof that this thread acts for an owner. Dropping it leaves the owner.
#[derive(Debug)]
pub struct OnOwnerThread<'a> {
    before: OwnerId,
    /// For a closed owner. Dropped after this thread has left.
    acting: Option<ActingOwner>,
    _owner: PhantomData<(&'a OwnerThread, *mut ())>,
}

impl Drop for OnOwnerThread<'_> {
    #[inline]
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.owner.set(self.before.0));
        if self.acting.is_some() {
            Polling::here(Polling::leave_closed);
        }
    }
}

impl OwnerThread {
    /// Creates an owner whose own thread is this one.
    pub fn new() -> Self {
        let id = next_id();
        let shared = Arc::new(SharedOwner {
            header: UnsafeCell::new(Header::new(const { &WorkKind::new(SharedOwner::called) })),
            id,
            closed: AtomicBool::new(false),
            thread: thread_mark(),
            wakes: Mutex::new(Wakes { list: Vec::new(), posted: false }),
        });
        Self { id, shared }
    }

    /// Returns its number.
    #[inline]
    pub fn id(&self) -> OwnerId {
        self.id
    }

    /// Returns true if this is the thread that created it.
    pub fn is_own_thread(&self) -> bool {
        self.shared.thread == thread_mark()
    }

    /// Enters the owner: this thread acts for it until the guard is dropped.
    ///
    /// # Safety
    /// No other thread has entered, or enters before the guard is dropped; and the owner is not closed.
    #[inline]
    pub unsafe fn enter(&self) -> OnOwnerThread<'_> {
        OnOwnerThread { before: self.id.enter(), acting: None, _owner: PhantomData }
    }

    /// Closes the owner and enters it: from now on its remote wakes are run by the threads that bring them,
    /// one thread at a time. Dropping the guard runs all wakes that have been sent by then.
    ///
    /// # Safety
    /// As for [`enter`](Self::enter); and `enter` is not called any more.
    pub unsafe fn close(&self) -> OnOwnerThread<'_> {
        let acting = ActingOwner::closing(&self.shared);
        self.shared.closed.store(true, Ordering::Release);
        if acting.is_some() {
            Polling::here(Polling::enter_closed);
        }
        OnOwnerThread { before: self.id.enter(), acting, _owner: PhantomData }
    }

    /// Returns true if it was closed.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Keeps other threads from acting for the owner with this number, for as long as the result exists: for
    /// values that must not leave their thread, and are used there while the owner is not run. Waits for a
    /// thread that acts for the owner now, which only happens if it is closed. Remote wakes that are sent
    /// meanwhile run when the result is dropped.
    pub fn keep_out(number: u32) -> impl Sized {
        Exclusive::new(OwnerId(number))
    }

    /// Sends a remote wake to the owner thread. Post the result to the executor that this owner belongs to.
    ///
    /// # Safety
    /// The wake may be run once, by a thread that acts for this owner, at any time from now on.
    #[must_use = "the wake does not run until the runnable is posted"]
    pub unsafe fn send(&self, wake: RemoteWake) -> Option<Runnable> {
        let mut wakes = self.shared.wakes();
        wakes.list.push(wake);
        SharedOwner::runnable(&self.shared, wakes)
    }
}

impl SharedOwner {
    pub(super) fn id(&self) -> OwnerId {
        self.id
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Creates the runnable that runs the wakes, unless there is one already.
    fn runnable(this: &Arc<Self>, mut wakes: MutexGuard<'_, Wakes>) -> Option<Runnable> {
        if core::mem::replace(&mut wakes.posted, true) {
            return None;
        }
        drop(wakes);
        let header = Arc::into_raw(this.clone()).cast_mut().cast::<Header>();
        // SAFETY: the header is the first field (`repr(C)`). The count that `into_raw` left keeps it alive
        // until `called` takes the count back. Rule 3: `posted` was false, so there is no other runnable for
        // it.
        Some(unsafe { Runnable::new(NonNull::new_unchecked(header)) })
    }

    /// Runs the wakes, or leaves them to another thread.
    ///
    /// # Safety
    /// Called once for each `runnable`, with its header.
    unsafe fn called(header: NonNull<Header>, call: Call) {
        // SAFETY: the pointer and the count are those that `runnable` left with `into_raw`, and this is
        // called once for it.
        let owner = unsafe { Arc::from_raw(header.as_ptr().cast_const().cast::<Self>()) };
        if call == Call::Run && OwnerId::here() == owner.id && !owner.is_closed() {
            return owner.run_posted();
        }
        owner.wakes().posted = false;
        // If the owner is closed, this thread runs the wakes, or the thread that acts for it already. If it
        // is not closed, its executor dropped the runnable, or ran it elsewhere: the wakes wait for the next
        // one, or for `close`. A wake that came too late for `close` to run it finds the owner closed here,
        // because both took the mutex of the wakes.
        if owner.is_closed() {
            drop(ActingOwner::enter(&owner));
        }
    }

    /// Runs the wakes whose runnable was called, and those that are sent meanwhile, which are not posted
    /// again.
    fn run_posted(&self) {
        self.run_while(|wakes| {
            wakes.posted = !wakes.list.is_empty();
            wakes.posted
        });
    }

    /// Runs the wakes of a closed owner. This thread is its acting owner.
    pub(super) fn run_as_acting_owner(&self) {
        let before = self.id.enter();
        Polling::here(Polling::enter_closed);
        let _leave = LeaveClosed(before);
        self.run_while(|wakes| !wakes.list.is_empty());
    }

    fn run_while(&self, more: impl Fn(&mut Wakes) -> bool) {
        let mut first_panic = None;
        loop {
            let list = {
                let mut wakes = self.wakes();
                if !more(&mut wakes) {
                    break;
                }
                core::mem::take(&mut wakes.list)
            };
            for wake in &list {
                // A waker or an executor of the program may panic: the other wakes are run nevertheless.
                // SAFETY: the task that has sent the wake holds a count for one run of it, and this is the one: it
                // was taken out of the list. This thread acts for the owner: `run_posted` is called after a check of `OwnerId::here`, and
                // `run_as_acting_owner` has entered.
                if let Err(panic) = Panic::catch(|| unsafe { (wake.run)(wake.target) }) {
                    first_panic.get_or_insert(panic);
                }
            }
            // Puts the vector back for its capacity: in the steady state nothing is allocated.
            let mut wakes = self.wakes();
            if wakes.list.capacity() == 0 {
                let mut list = list;
                list.clear();
                wakes.list = list;
            }
        }
        if let Some(panic) = first_panic {
            panic.resume();
        }
    }

    fn wakes(&self) -> MutexGuard<'_, Wakes> {
        self.wakes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Leaves a closed owner when it is dropped, and goes back to the one before.
struct LeaveClosed(OwnerId);

impl Drop for LeaveClosed {
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.owner.set(self.0.0));
        Polling::here(Polling::leave_closed);
    }
}

impl RemoteWake {
    /// Creates a wake that calls `run(target)` on the owner thread.
    #[inline]
    pub const fn new(target: NonNull<()>, run: unsafe fn(NonNull<()>)) -> Self {
        Self { target, run }
    }
}

fn next_id() -> OwnerId {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    // When all numbers are used up, owners get `NONE`: their tasks then use the slower path of tasks without
    // an owner.
    let next = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
    OwnerId(next.unwrap_or(0))
}

impl Default for OwnerThread {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OwnerThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerThread")
            .field("id", &self.id)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RemoteWake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteWake").field(&self.target).finish()
    }
}
