//! A task with a handle: the two ends between which its outcome and a waker change hands. The child's end is
//! the first part of its ending ([`WithHandle`]); the other one is [`Join`]. They meet in a [`Rendezvous`],
//! the same machine by which a future meets an adopted operation. The rules:
//!
//! 1. While a `Join` exists, it has a reference to the task (`Anywhere`), or is the handle that the task was
//!    made with (`SameThread`): the task's memory is alive.
//! 2. `rendezvous` says which end may touch the waker and the outcome. Before the first `wait` the waker is
//!    the handle's.
//! 3. A `Join` that stays on the owner thread touches the task only there, or while `keep_others_out` excludes
//!    that thread.
//! 4. `location` does not change. The spawn site in the header may be read until the task has delivered.

#![allow(unsafe_code)]

use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::ptr::NonNull;
use core::task::Waker;
use std::sync::Arc;

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::wake_if_any;
use convoke_core::raw::{
    Abandon, Complete, OwnerThread, Peek, ReasonCode, Rendezvous, Runnable, Wait, WakerMark,
};
use convoke_core::{Outcome, Panic, StopReason};

use super::asked_for::AskedFor;
use super::cell::{Cell, OutcomeSlot, part_of};
use super::children::Added;
use super::ending::Ending;
use super::handle_kind::{HandleKind, WakerSlot};
use super::header::{NotLeft, TaskHeader};
use super::inside::Inside;
use super::new_task::NewTask;
use super::parent_link::ParentLink;
use super::reference::{Alive, Leaving, Left, TaskRef};
use super::stop_walk::StopWalk;
use super::unheard::heard;

/// The part of a child that it shares with its handle, where the handle finds it without knowing the type of
/// the child's future: right behind the header.
#[repr(C)]
struct HandlePart<K: HandleKind> {
    /// First: the task finds it there.
    asked_for: AskedFor,
    rendezvous: Rendezvous,
    /// The waker of the task that awaits the handle: rule 2.
    waker: UnsafeCell<K::Slot>,
    /// The spawn site, for a handle that cannot tell if the child has ended: the header has it only until then.
    location: K::Location,
}

impl<K: HandleKind> HandlePart<K> {
    /// The distance from the start of the child, in bytes.
    const OFFSET: usize = size_of::<TaskHeader>().next_multiple_of(align_of::<Self>());

    /// Calls `f` with the stored waker. The caller owns it by rule 2: the child between `Wake` and `left`, the handle
    /// before the first `wait` and between `change` and `changed`, or a local handle, to which rule 3 gives both ends.
    /// `f` runs no code of the program, which might come back here.
    #[inline]
    fn with_waker<R>(&self, f: impl FnOnce(&mut Option<Waker>) -> R) -> R {
        // SAFETY: rule 2: the callers own the waker, and `f` does not come back.
        f(unsafe { (*self.waker.get()).waker() })
    }

    /// Takes the waker, which the caller owns.
    #[inline]
    fn take_waker(&self) -> Option<Waker> {
        self.with_waker(Option::take)
    }
}

/// The ending of a child with a handle of kind `K`. `E` tells the parent.
#[repr(C)]
pub(crate) struct WithHandle<E, K: HandleKind> {
    /// First: the handle finds it at a fixed distance from the header.
    shared: HandlePart<K>,
    inner: E,
}

/// The ending of a child, behind its handle.
///
/// # Safety
/// Contract 1 of [`Ending`].
pub(crate) unsafe trait BehindHandle {
    /// As [`Ending::own_link`].
    #[inline]
    fn own_link(&self) -> Option<&ParentLink> {
        None
    }

    /// As [`Ending::name`].
    #[inline]
    fn name(&self) -> Option<Arc<str>> {
        None
    }

    /// As [`Ending::ended`].
    fn ended<T>(&self, task: &Inside, outcome: &mut Outcome<T>);

    /// Tells the parent, after the handle was told. `unheard` is a panic that no handle will hear of.
    fn deliver(&self, task: Leaving<'_>, unheard: Option<Panic>) -> Left;
}

impl<E, K: HandleKind> WithHandle<E, K> {
    /// Creates the ending of a child that `location` spawned.
    #[inline]
    pub(crate) fn new(location: &'static Location<'static>, inner: E) -> Self {
        let location = K::Location::from(location);
        let (asked_for, rendezvous) = (AskedFor::new(), Rendezvous::new());
        let shared = HandlePart { asked_for, rendezvous, waker: UnsafeCell::new(K::Slot::empty()), location };
        Self { shared, inner }
    }

    /// Returns the part that tells the parent.
    #[inline]
    pub(crate) fn inner(&self) -> &E {
        &self.inner
    }

    /// Hands the outcome over to the handle. Returns false, and leaves the outcome, if the handle is gone.
    #[inline(always)]
    fn hand_over(&self) -> bool {
        let rendezvous = &self.shared.rendezvous;
        match if K::LOCAL { rendezvous.complete_here() } else { rendezvous.complete() } {
            Complete::Leave => true,
            Complete::Wake => {
                let waker = self.shared.take_waker();
                rendezvous.left();
                // A panic of the waker is contained: the parent must hear of the end in any case.
                wake_if_any(waker);
                true
            }
            Complete::Free => false,
        }
    }
}

impl<E: BehindHandle, K: HandleKind> WithHandle<E, K> {
    /// Tells the parent of a child whose handle is gone: of a panic, too, that no handle will hear of.
    #[cold]
    #[inline(never)]
    fn deliver_unheard<T>(&self, task: Leaving<'_>, outcome: OutcomeSlot<'_, T>) -> (Left, ()) {
        if task.must_stay_on_its_thread() {
            return (self.inner.deliver(task, None), ());
        }
        let taken = Panic::catch(|| match outcome.take() {
            Outcome::Panicked(panic) => Some(heard(panic)),
            _ => None,
        });
        (self.inner.deliver(task, taken.unwrap_or_else(Some)), ())
    }
}

// SAFETY: contract 1 is that of `BehindHandle`. Contract 2: `post_with_handle` asserts that the ending, which
// begins with the word, is at that offset.
unsafe impl<T, E: BehindHandle, K: HandleKind> Ending<T> for WithHandle<E, K> {
    const REFERENCES: u32 = if K::LOCAL { 0 } else { 1 };
    const HANDLE: bool = K::LOCAL;
    const ASKED_FOR: bool = true;
    type After = ();

    #[inline]
    fn own_link(&self) -> Option<&ParentLink> {
        self.inner.own_link()
    }

    fn name(&self) -> Option<Arc<str>> {
        self.inner.name()
    }

    #[inline]
    fn ended(&self, task: &Inside, outcome: &mut Outcome<T>) {
        self.inner.ended(task, outcome);
    }

    #[inline(always)]
    fn deliver(&self, task: Leaving<'_>, outcome: OutcomeSlot<'_, T>) -> (Left, ()) {
        if self.hand_over() {
            (self.inner.deliver(task, None), ())
        } else {
            self.deliver_unheard(task, outcome)
        }
    }
}

impl<F: Future, E: BehindHandle, K: HandleKind> Added<F, WithHandle<E, K>> {
    /// Posts the task to its executor, and returns the handle's end.
    #[inline]
    pub(crate) fn post_with_handle(self) -> Join<F::Output, K> {
        self.begin_with_handle(NewTask::post)
    }

    /// Runs the task at once, if its executor is the run loop of this thread, or posts it. Returns the handle's end.
    #[inline]
    pub(crate) fn run_with_handle(self) -> Join<F::Output, K> {
        self.begin_with_handle(NewTask::run_or_post)
    }

    // `NewTask::create` has checked that the future stays on its thread if the handle does.
    #[inline]
    fn begin_with_handle(self, begin: impl FnOnce(NewTask<F, WithHandle<E, K>>)) -> Join<F::Output, K> {
        const {
            assert!(
                Cell::<F, WithHandle<E, K>>::ENDING_AT == HandlePart::<K>::OFFSET,
                "the handle finds the shared part at this offset"
            );
            assert!(
                core::mem::offset_of!(HandlePart<K>, asked_for) == 0
                    && HandlePart::<K>::OFFSET == AskedFor::OFFSET,
                "the task finds the reason of a stop at this offset"
            );
        };
        let child = self.task().untyped.task();
        // Rule 1: the task was made with one reference for the handle, or with the mark of a local one, and
        // beginning consumes `self`.
        begin(self.into_task());
        Join {
            child,
            outcome: part_of(child, Cell::<F, WithHandle<E, K>>::BODY_AT) as *mut Outcome<F::Output>,
            stored: K::Stored::default(),
            _outcome: PhantomData,
        }
    }
}

/// The end of a child, as its handle is told.
pub(crate) enum End<T> {
    Value(T),
    /// It was stopped, for this reason. Without one it has stopped by itself.
    Stopped(Option<ReasonCode>),
    /// It panicked. The handle has heard of it.
    Panicked(Panic),
}

impl<T> End<T> {
    pub(crate) fn into_outcome(self) -> Outcome<T> {
        match self {
            Self::Value(value) => Outcome::Value(value),
            Self::Stopped(_) => Outcome::Stopped,
            Self::Panicked(panic) => Outcome::Panicked(panic),
        }
    }
}

/// The handle's end of a task with a handle. If dropped, the task is asked to stop, and its outcome dropped.
pub(crate) struct Join<T, K: HandleKind> {
    /// The task, with a pointer that may be used for all of it.
    child: NonNull<TaskHeader>,
    outcome: *mut Outcome<T>,
    /// Identity of the waker that is stored in the child. Only compared, to see if another waker comes.
    stored: K::Stored,
    _outcome: PhantomData<(Outcome<T>, K)>,
}

// SAFETY: rules 1 and 2; the outcome goes from the child's thread to this one, and `T` is `Send`.
unsafe impl<T: Send> Send for Join<T, super::handle_kind::Anywhere> {}
// SAFETY: `&Join` only allows to ask for a stop and for the spawn site, which touches no `T`, and may be done
// on any thread.
unsafe impl<T: Send> Sync for Join<T, super::handle_kind::Anywhere> {}

impl<T, K: HandleKind> Join<T, K> {
    #[inline]
    pub(super) fn alive(&self) -> Alive<'_> {
        // SAFETY: fact 1 of `Alive`, by our rule 1.
        unsafe { Alive::new(self.child) }
    }

    #[inline]
    fn shared(&self) -> &HandlePart<K> {
        // SAFETY: `post_with_handle` asserts that the shared part is at this offset. Rule 1: the child is
        // alive.
        unsafe { self.child.cast::<u8>().add(HandlePart::<K>::OFFSET).cast().as_ref() }
    }

    /// Returns true if this thread may touch the child without excluding others: the handle is not local, or
    /// this is the owner thread.
    #[inline]
    fn is_on_owner_thread(&self) -> bool {
        !K::LOCAL || self.alive().header().is_on_owner_thread()
    }

    /// Excludes other threads from the child's run queue, for a local handle that is used or dropped off its
    /// owner thread. That happens only while the queue is not run; then only a thread that closes the queue
    /// could touch the child.
    pub(super) fn keep_others_out(&self) -> Option<impl Sized + use<T, K>> {
        (!self.is_on_owner_thread()).then(|| OwnerThread::keep_out(self.alive().header().owner_number()))
    }

    /// Asks the child to stop. It can still be waited for.
    pub(crate) fn ask_stop(&self, reason: StopReason) {
        let mut walk = StopWalk::new(reason);
        let others_out = self.keep_others_out();
        self.ask_stop_now(&mut walk);
        drop(others_out);
        walk.run();
    }

    /// Asks the child to stop: rule 3 allows this thread to touch it.
    fn ask_stop_now(&self, walk: &mut StopWalk) {
        // A request of the parent that came before has its own reason.
        if !self.alive().header().state.stop_asked() {
            self.shared().asked_for.set(walk.reason());
        }
        if K::LOCAL {
            self.alive().ask_stop_as_owner(walk);
        } else {
            self.alive().ask_stop(walk);
        }
    }

    /// Returns true if the outcome is there.
    pub(crate) fn is_done(&self) -> bool {
        let _others_out = self.keep_others_out();
        self.shared().rendezvous.is_done()
    }

    /// Returns the spawn site, or `None` if it is not known any more.
    pub(crate) fn location(&self) -> Option<&'static Location<'static>> {
        self.location_if(self.is_on_owner_thread())
    }

    /// Returns the stored spawn site. If there is none, the one in the header: if this thread may touch the
    /// child by rule 3, and the child has not delivered.
    fn location_if(&self, touch: bool) -> Option<&'static Location<'static>> {
        let HandlePart { location, rendezvous, .. } = self.shared();
        let stored = (*location).into();
        if stored.is_some() || !touch || rendezvous.is_done() {
            return stored;
        }
        // SAFETY: rule 4: the rendezvous is not done, and the handle is local: the one thread that could let
        // the child deliver is this one, or kept out.
        Some(unsafe { NotLeft::new(self.alive().header()) }.kind().location)
    }

    /// Takes the value out of `join`, and releases the child, if it has ended with one and this is the owner
    /// thread of a local handle.
    #[inline]
    pub(crate) fn take_value_if_done(join: &mut Option<Self>) -> Option<T> {
        let Self { child, outcome, stored, .. } = *join.as_ref()?;
        // Out of memory, which would be read once more after the rendezvous.
        let here = ManuallyDrop::new(Self { child, outcome, stored, _outcome: PhantomData });
        if !(here.is_on_owner_thread() && here.shared().rendezvous.is_done()) {
            return None;
        }
        let value = here.read_value()?;
        core::mem::forget(join.take());
        here.release();
        Some(value)
    }

    /// Takes the end out of `join`, and releases the child, if it has ended and this is the owner thread of a
    /// local handle.
    pub(crate) fn take_if_done(join: &mut Option<Self>) -> Option<End<T>> {
        let is_ready = |join: &Self| join.is_on_owner_thread() && join.shared().rendezvous.is_done();
        join.take_if(|join| is_ready(join)).map(Self::take)
    }

    /// Takes the end out of `join`, and releases the child, if it has ended. Otherwise stores the waker, and
    /// returns the spawn site of the child that is waited for.
    #[inline]
    pub(crate) fn take_or_wait(
        join: &mut Option<Self>,
        waker: &Waker,
    ) -> Result<End<T>, Option<&'static Location<'static>>> {
        let Some(here) = join else { return Err(None) };
        let _others_out = here.keep_others_out();
        if here.peek_or_wait(waker) == Peek::NotYet {
            return Err(here.location_if(true));
        }
        join.take().map(Self::take).ok_or(None)
    }

    /// Returns `Done` if the outcome is there. Otherwise stores the waker in the child.
    #[inline]
    fn peek_or_wait(&mut self, waker: &Waker) -> Peek {
        let shared = self.shared();
        let rendezvous = &shared.rendezvous;
        let identity = WakerMark::of(waker);
        if rendezvous.peek() == Peek::Done {
            return Peek::Done;
        }
        let stored = if K::LOCAL {
            // Rules 2 and 3: the waker is the child's, which does not touch it while this thread is in here.
            shared.with_waker(|stored| stored.as_ref().map(WakerMark::of))
        } else {
            self.stored.into()
        };
        if stored == Some(identity) {
            return rendezvous.peek();
        }
        // Cloned before the exchange: the child waits during the change, and a clone may run foreign code.
        let waker = waker.clone();
        // Called before the first `wait`, or between `change` and `changed`: rule 2.
        let put = || shared.with_waker(|stored| stored.replace(waker));
        if stored.is_some() {
            if rendezvous.change() == Peek::Done {
                return Peek::Done;
            }
            let before = put();
            rendezvous.changed();
            self.stored = identity.into();
            drop(before);
            return Peek::NotYet;
        }
        put();
        if (if K::LOCAL { rendezvous.wait_here() } else { rendezvous.wait() }) == Wait::Done {
            if K::LOCAL {
                // The clone has run the child: it is foreign code. The slot is empty when a child is freed.
                drop(self.shared().take_waker());
            }
            return Peek::Done;
        }
        self.stored = identity.into();
        Peek::NotYet
    }

    /// Takes the outcome, which is there, and releases the child.
    #[inline]
    fn take(self) -> End<T> {
        let this = ManuallyDrop::new(self);
        let end = match this.read() {
            Outcome::Value(value) => End::Value(value),
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped => End::Stopped(this.shared().asked_for.code()),
            Outcome::Panicked(panic) => End::Panicked(heard(panic)),
        };
        this.release();
        end
    }

    /// Reads the value, if the outcome is one. Called by `take_value_if_done`, which uses the handle up then.
    #[inline]
    fn read_value(&self) -> Option<T> {
        // SAFETY: rule 2: the caller has found the rendezvous done, so the outcome belongs to the handle. A value is
        // read once, as the handle is used up.
        unsafe {
            match &*self.outcome {
                Outcome::Value(value) => Some(core::ptr::from_ref(value).read()),
                _ => None,
            }
        }
    }

    /// Reads the outcome. Called once, by `take`, `drop` or neither.
    #[inline]
    fn read(&self) -> Outcome<T> {
        // SAFETY: rule 2: the callers have found the rendezvous done, or were told to free the outcome: it
        // belongs to the handle. It is read once, as both use the handle up.
        unsafe { self.outcome.read() }
    }

    /// Releases the child, whose memory may be freed when this returns. Called last.
    #[inline]
    fn release(&self) {
        if !K::LOCAL {
            // SAFETY: rule 1: the handle has the reference that is given up here, once.
            drop(unsafe { TaskRef::from_counted(self.child) });
        } else if self.alive().header().state.drop_handle() {
            // SAFETY: the state has said that this was the last reference; a task without its own has left and
            // is not queued.
            drop(unsafe { Runnable::new(self.child.cast()) });
        }
    }
}

impl<T, K: HandleKind> Drop for Join<T, K> {
    #[cold]
    fn drop(&mut self) {
        // Dropped last, without the exclusion: goes down to the scopes that are open in the child.
        let mut walk = StopWalk::new(StopReason::Abandoned);
        let _others_out = self.keep_others_out();
        // Before `abandon`: until then the child keeps its memory for the handle.
        self.ask_stop_now(&mut walk);
        let rendezvous = &self.shared().rendezvous;
        if K::LOCAL {
            let waker = self.shared().take_waker();
            // A foreign waker may panic. The panic hook has reported it.
            let _ = Panic::catch(|| drop(waker));
        }
        if (if K::LOCAL { rendezvous.abandon_here() } else { rendezvous.abandon() }) == Abandon::Free {
            // The panic hook has reported a panic in it.
            let _ = Panic::catch(|| drop(self.read()));
        }
        self.release();
    }
}
