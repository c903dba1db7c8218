//! The operation behind `when_all`, `when_any` and `stop_when`: several children at once, all of them
//! awaited, and one outcome made from theirs.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::{PhantomData, PhantomPinned};
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;

use crate::erased::Enclosing;
use crate::operation::{Children, EnvAbove};
use crate::{Completes, Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::ScopedEnv;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{Slot, WorkRef};
use convoke_core::{Env, Outcome, Panic, StopReason};

/// A group of senders, and the function that turns the outcomes of its children into one.
///
/// `when_all`, `when_any` and `stop_when` are such groups, for tuples and for vectors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a group of senders that can run together",
    note = "groups are tuples of up to twelve senders, or a `Vec` of one type of sender",
    note = "the senders of a group have the same error type: say `may_fail()` or `map_error` where they differ",
    note = "their values and errors must be `Send`, as they are stored until all have completed"
)]
///
/// # Safety
/// The operation of the group relies on these rules:
/// 1. `connect` passes each slot to `GatherParent::connect`, once, and there are `count` of them. `start` passes
///    each to `Starter::start`, once. Nothing else uses the slots.
/// 2. `connect` makes at most one [`ResultWriter`] of a [`ResultSlot`], of slots in the `kept` that it was given, and gives
///    it to one child.
pub unsafe trait Gather: Sized + Send {
    /// The type of the value that the group completes with.
    type Value;
    /// The type of the error that the group fails with.
    type Error;
    /// The compile-time knowledge about where the group completes: inline if all children are.
    const COMPLETES: Completes;
    /// The storage of outcomes until all children have completed. The children share it through `&`.
    type Kept: Send;
    /// The storage of the operations of the children.
    type Slots<R: Receiver<Self::Value, Self::Error>>: Send;

    /// Returns the number of children.
    fn count(&self) -> usize;

    /// Returns empty storage for outcomes.
    fn kept(&self) -> Self::Kept;

    /// Returns empty storage for the operations of the children.
    fn slots<R: Receiver<Self::Value, Self::Error>>(&self) -> Self::Slots<R>;

    /// Connects all children.
    fn connect<R: Receiver<Self::Value, Self::Error>>(
        self,
        slots: &Self::Slots<R>,
        kept: &Self::Kept,
        parent: GatherParent<Self, R>,
    );

    /// Starts all children.
    fn start<R: Receiver<Self::Value, Self::Error>>(slots: &Self::Slots<R>, starter: &Starter<'_>);

    /// Returns the outcome of the group. Called when all children have completed.
    fn outcome(kept: &mut Self::Kept) -> Outcome<Self::Value, Self::Error>;
}

/// A group that takes the outcome of its child at index `P`.
pub trait Accept<P, V, E>: Gather {
    /// Stores the outcome as needed, and returns the reason if the other children are to stop now.
    fn accept(kept: &Self::Kept, index: P, outcome: Outcome<V, E>) -> Option<StopReason>;
}

/// The storage of one child's result. It is empty until the child that has its [`ResultWriter`] writes it.
pub struct ResultSlot<V>(UnsafeCell<Option<V>>);

impl<V> ResultSlot<V> {
    /// Creates an empty slot.
    #[inline]
    pub fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Takes the result, if there is one.
    #[inline]
    pub fn take(&mut self) -> Option<V> {
        self.0.get_mut().take()
    }

    /// Returns the result, if there is one.
    #[inline]
    pub fn into_inner(self) -> Option<V> {
        self.0.into_inner()
    }
}

/// The right of one child to write to its [`ResultSlot`].
pub struct ResultWriter<V>(NonNull<ResultSlot<V>>);

// SAFETY: rule 2 of `Gather`: only the child that has the writer uses the slot, until all have completed.
unsafe impl<V: Send> Send for ResultWriter<V> {}

impl<V> ResultWriter<V> {
    /// Creates the writer of a slot, in [`Gather::connect`].
    #[inline]
    pub(super) fn of(slot: &ResultSlot<V>) -> Self {
        Self(NonNull::from(slot))
    }

    /// Writes the result.
    #[inline]
    pub(super) fn put(self, result: V) {
        // SAFETY: rule 2 of `Gather`: the writer is the only one of its slot, which is part of `kept`. Rule 2
        // of `Gathering`: that is alive, as the child that calls this has not given back its count.
        unsafe { self.0.as_ref().0.with_mut(|slot| *slot = Some(result)) };
    }
}

/// The operation of a group.
///
/// 1. `start` is the only user of everything until it starts the first child; it holds a count of `children`
///    until it returns.
/// 2. From then on each child uses its own slot, and `kept` through `&`, until it gives back its count.
/// 3. `borrowed` and `above` are read-only meanwhile, and `receiver` is neither moved nor touched. The one
///    exception: if all children are inline, which is known at compile time, one thread does everything. The receiver
///    is asked when a child first asks for its environment, and the environment of the children is made when the first
///    one requests stop of the rest.
/// 4. The last one to give back a count is the only user, and takes `kept` and `receiver`.
pub struct Gathering<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    // Dropped in this order: the children before what they borrow.
    slots: G::Slots<R>,
    group: UnsafeCell<Option<G>>,
    kept: UnsafeCell<G::Kept>,
    borrowed: Borrowed,
    above: EnvAbove,
    receiver: UnsafeCell<Option<R>>,
    _pinned: PhantomPinned,
}

/// A stop source, and an environment with it, that the children borrow if the group was armed.
struct Borrowed {
    env: ManuallyDrop<UnsafeCell<Option<ScopedEnv>>>,
    children: ManuallyDrop<Children>,
}

impl Drop for Borrowed {
    /// Drops by hand, so that groups that were never armed, as inline ones are not, contain no code to
    /// destroy a stop source.
    #[inline]
    fn drop(&mut self) {
        if self.env.get_mut().is_some() {
            self.disarm();
        }
    }
}

impl Borrowed {
    fn new(children: usize) -> Self {
        Self {
            env: ManuallyDrop::new(UnsafeCell::new(None)),
            children: ManuallyDrop::new(Children::new(children)),
        }
    }

    #[cold]
    #[inline(never)]
    fn disarm(&mut self) {
        // SAFETY: called only by `drop`; neither field is used again.
        unsafe {
            ManuallyDrop::drop(&mut self.env);
            ManuallyDrop::drop(&mut self.children);
        }
    }
}

/// The address of the operation that children report to. Rules 1 and 2: `start` and each child hold a count, and the
/// operation is alive until the last one is given back.
pub struct GatherParent<G, R>(WorkRef<Gathering<G, R>>)
where
    G: Gather,
    R: Receiver<G::Value, G::Error>;

/// The receiver of a child: a pointer to the operation.
pub struct GatherChild<G, R, P>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    parent: GatherParent<G, R>,
    index: P,
}

// SAFETY: all parts are `Send`; rules 1 to 4 say which thread uses them when, and what is shared (rules 2 and
// 3) is made for it.
unsafe impl<G, R> Sync for Gathering<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
}

// SAFETY: the operation is `Send`, and rules 2 and 3 separate the children.
unsafe impl<G, R> Send for GatherParent<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
}

impl<G, R> Clone for GatherParent<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<G, R> Copy for GatherParent<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
}

impl<G, R> GatherParent<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    /// Connects the child at `index` into its slot.
    #[inline]
    pub(super) fn connect<P, S>(self, slot: &Slot<S::Operation<GatherChild<G, R, P>>>, sender: S, index: P)
    where
        P: Send,
        S: Sender,
        G: Accept<P, S::Value, S::Error>,
    {
        // SAFETY: rule 1 of `Gather`: `Gather::connect` passes each slot once, so it is empty. It is part of
        // the operation, which is pinned; rule 1: `start` is its only user.
        unsafe { slot.connect(|| sender.connect(GatherChild { parent: self, index })) };
    }
}

/// The right to start the children of a group: [`Gather::start`] has it.
pub struct Starter<'a>(PhantomData<&'a ()>);

impl Starter<'_> {
    /// Starts the child in `slot`.
    #[inline]
    pub(super) fn start<O: Operation>(&self, slot: &Slot<O>) {
        // SAFETY: rule 1 of `Gather`: the slot was connected, and is started once. Rule 1 of `Gathering`:
        // `start` holds a count, so the slot outlives the child and this call.
        unsafe { Slot::start(NonNull::from(slot)) };
    }
}

impl<G, R> Gathering<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    #[inline]
    pub(crate) fn new(group: G, receiver: R) -> Self {
        Self {
            slots: group.slots(),
            kept: UnsafeCell::new(group.kept()),
            borrowed: Borrowed::new(group.count()),
            group: UnsafeCell::new(Some(group)),
            above: EnvAbove::new(),
            receiver: UnsafeCell::new(Some(receiver)),
            _pinned: PhantomPinned,
        }
    }

    /// Returns the environment of the children, and the boxed operation that they are part of.
    #[inline]
    fn around_children(&self) -> (&Env, Option<Enclosing>) {
        // SAFETY: rules 2 and 3: this is called by `start`, and by children that have not arrived, so what is read is not
        // moved, and read-only. The exception: one thread does everything, and it asks here once.
        unsafe {
            if G::COMPLETES.is_inline()
                && !self.above.has_asked()
                && let Some(receiver) = &*self.receiver.get_const()
            {
                self.above.ask(receiver);
            }
            match &*self.borrowed.env.get_const() {
                Some(env) => (env, self.above.enclosing()),
                None => (self.above.get(), self.above.enclosing()),
            }
        }
    }

    /// Creates the stop source of the children and their environment.
    ///
    /// # Safety
    /// Rule 1, or the exception in rule 3: there is no other user, and no running child has borrowed another
    /// environment.
    unsafe fn arm(&self) {
        // SAFETY: rule 3: the receiver is not moved until rule 4 applies. Its environment and our stop source
        // outlive the children, which are the borrowers of the scoped environment.
        unsafe {
            let above = self.around_children().0;
            let stop = self.borrowed.children.arm(above.stop(), NonNull::from(self).cast(), Self::finish);
            *self.borrowed.env.get() = Some(ScopedEnv::with_in_place_stop(above, stop));
        }
    }

    /// Completes the receiver, as the callback of `Children`.
    ///
    /// # Safety
    /// Called once, by the last one to give back a count (rule 4).
    unsafe fn finish(this: NonNull<()>) {
        // SAFETY: rule 4: the caller is the last; the operation is alive until its receiver is completed.
        unsafe { Self::deliver(this.cast()) };
    }

    /// Completes the receiver. Always inlined: then nothing but the outcome is left of a group that is
    /// inline.
    ///
    /// # Safety
    /// Called once, by the last one to give back a count (rule 4).
    #[inline(always)]
    unsafe fn deliver(this: NonNull<Self>) {
        // SAFETY: rule 4: the caller is the only user. The receiver may free the operation: nothing is
        // touched after its completion, and the operation is taken by pointer.
        unsafe {
            let Self { borrowed, kept, receiver, .. } = this.as_ref();
            let kept = kept.get();
            let outcome = match borrowed.children.take_panic() {
                Some(panic) => Outcome::Panicked(panic),
                // Caught, because the stored outcomes that are not part of the result are dropped in there.
                None => Panic::catch(|| G::outcome(&mut *kept)).unwrap_or_else(Outcome::Panicked),
            };
            if let Some(receiver) = (*receiver.get()).take() {
                receiver.complete(outcome);
            }
        }
    }
}

impl<G, R> Operation for Gathering<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: rule 1: everything is ours until the children start, and alive until we give back our count
        // (or, with inline children, until `deliver`, which is last). The operation is pinned, so children
        // may point to it.
        unsafe {
            let parent = GatherParent(WorkRef::new(this));
            let this = &*parent.0;
            let Some(group) = (*this.group.get()).take() else { return };
            if !G::COMPLETES.is_inline()
                && let Some(receiver) = &*this.receiver.get_const()
            {
                this.above.ask(receiver);
            }
            let armed = !G::COMPLETES.is_inline() && group.count() > 1;
            if armed {
                this.arm();
            }
            group.connect(&this.slots, &*this.kept.get_const(), parent);
            if armed {
                this.borrowed.children.link(this.above.get().stop());
            }
            G::start(&this.slots, &Starter(PhantomData));
            if G::COMPLETES.is_inline() {
                Self::deliver(parent.0.pointer());
            } else {
                let children = NonNull::from(&*this.borrowed.children);
                Children::arrive(children, parent.0.pointer().cast(), Self::finish);
            }
        }
    }
}

#[diagnostic::do_not_recommend]
impl<G, R, P, V, E> Receiver<V, E> for GatherChild<G, R, P>
where
    G: Accept<P, V, E>,
    R: Receiver<G::Value, G::Error>,
    P: Send,
{
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        // SAFETY: rule 2: this call holds the child's count, so the operation is alive; nothing is touched
        // after `arrive`.
        unsafe {
            let parent = &*self.parent.0;
            let stop = G::accept(&*parent.kept.get_const(), self.index, outcome);
            if G::COMPLETES.is_inline() {
                // Rule 3, the exception: this child and those before it have ended, and those after it have
                // not started.
                if let Some(reason) = stop
                    && (*parent.borrowed.env.get_const()).is_none()
                {
                    parent.arm();
                    parent.borrowed.children.request_stop(reason);
                }
                return;
            }
            if let Some(reason) = stop {
                parent.borrowed.children.request_stop(reason);
            }
            let children = NonNull::from(&*parent.borrowed.children);
            Children::arrive(children, self.parent.0.pointer().cast(), Gathering::<G, R>::finish);
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        self.parent.0.around_children().0
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        self.parent.0.around_children().1
    }
}

/// Combines the knowledge about all children: inline if all are, else anywhere, because the last child to
/// complete decides and it is not known which one that is.
pub(super) const fn together(all: Completes) -> Completes {
    if all.is_inline() { Completes::Inline } else { Completes::Anywhere }
}

impl<V> Default for ResultSlot<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> fmt::Debug for ResultSlot<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultSlot").finish_non_exhaustive()
    }
}

impl<V> fmt::Debug for ResultWriter<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultWriter").finish_non_exhaustive()
    }
}

impl fmt::Debug for Starter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Starter").finish_non_exhaustive()
    }
}

impl<G, R> fmt::Debug for Gathering<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathering").field("children", &self.borrowed.children).finish_non_exhaustive()
    }
}

impl<G, R> fmt::Debug for GatherParent<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatherParent").finish_non_exhaustive()
    }
}

impl<G, R, P> fmt::Debug for GatherChild<G, R, P>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatherChild").finish_non_exhaustive()
    }
}
