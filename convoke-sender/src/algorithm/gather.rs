//! The operation behind `when_all`, `when_any` and `stop_when`: several children at once, all of them awaited, one
//! outcome made of theirs.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;

use super::trampoline::Enclosing;
use crate::operation::{Children, EnvAbove};
use crate::{Completes, Receiver};
use convoke_core::raw::Operation;
use convoke_core::raw::ScopedEnv;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::{Env, Outcome, Panic, StopReason};

/// A group of senders, and how the outcomes of its children become one.
///
/// `when_all`, `when_any` and `stop_when` are such groups, for tuples and for vectors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a group of senders that can run together",
    note = "groups are tuples of up to twelve senders, or a `Vec` of one type of sender",
    note = "the senders of a group have the same error type: say `may_fail()` or `map_error` where they differ",
    note = "their values and errors must be `Send`, as they are kept until all have completed"
)]
pub trait Gather: Sized + Send {
    /// What the group completes with.
    type Value;
    /// What the group fails with.
    type Error;
    /// Inline if all children are.
    const COMPLETES: Completes;
    /// Whether a child's outcome can be a reason to stop the others. If not, there is no stop source.
    const STOPS: bool;
    /// Where outcomes are kept until all children are home. Children use it together, through `&`.
    type Kept: Send;
    /// Room for the operations of the children.
    type Slots<R: Receiver<Self::Value, Self::Error>>: Send;

    /// How many children.
    fn count(&self) -> usize;

    /// Empty room for what is kept.
    fn kept(&self) -> Self::Kept;

    /// Empty room for the children.
    fn slots<R: Receiver<Self::Value, Self::Error>>(&self) -> Self::Slots<R>;

    /// Connects all children.
    ///
    /// # Safety
    /// The slots are pinned, empty, and used by nobody else; `parent` is the operation they lie in.
    unsafe fn connect<R: Receiver<Self::Value, Self::Error>>(
        self,
        slots: &Self::Slots<R>,
        kept: &Self::Kept,
        parent: Parent<Self, R>,
    );

    /// Starts all children.
    ///
    /// # Safety
    /// After `connect`, once; the slots outlive the completion of all children and this call.
    unsafe fn start<R: Receiver<Self::Value, Self::Error>>(slots: &Self::Slots<R>);

    /// The outcome of the group, when all children are home.
    fn outcome(kept: &mut Self::Kept) -> Outcome<Self::Value, Self::Error>;
}

/// How a group takes the outcome of the child at place `P`.
pub trait Accept<P, V, E>: Gather {
    /// Keeps what is to be kept, and says whether the other children are to stop now.
    fn accept(kept: &Self::Kept, place: P, outcome: Outcome<V, E>) -> Option<StopReason>;
}

/// The operation of a group.
///
/// 1. `start` alone uses everything until it starts the first child; it holds a count of `children` until it is done.
/// 2. From then on each child uses its own slot, and `kept` through `&`, until it gives back its count.
/// 3. What is `lent`, and `above`, are only read meanwhile; `receiver` stays in its place, untouched. The one exception:
///    if all children are inline, which is known to the compiler, one thread does everything, and the environment is made
///    when the first child asks the rest to stop.
/// 4. The last to give back a count is alone and takes `kept` and `receiver`.
pub struct Gathering<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    // Dropped in this order: children before what they were lent.
    slots: G::Slots<R>,
    group: UnsafeCell<Option<G>>,
    kept: UnsafeCell<G::Kept>,
    lent: Lent,
    above: EnvAbove,
    receiver: UnsafeCell<Option<R>>,
    _pinned: PhantomPinned,
}

/// What the children are lent: a stop source, and an environment that knows of it, if they were armed with them.
struct Lent {
    env: ManuallyDrop<UnsafeCell<Option<ScopedEnv>>>,
    children: ManuallyDrop<Children>,
}

impl Drop for Lent {
    /// By hand, so that children that were never armed, as inline ones are not, leave no code to destroy a stop source.
    #[inline]
    fn drop(&mut self) {
        if self.env.get_mut().is_some() {
            self.disarm();
        }
    }
}

impl Lent {
    fn new(children: usize) -> Self {
        Self {
            env: ManuallyDrop::new(UnsafeCell::new(None)),
            children: ManuallyDrop::new(Children::new(children)),
        }
    }

    #[cold]
    #[inline(never)]
    fn disarm(&mut self) {
        // SAFETY: called by `drop` alone; neither is used again.
        unsafe {
            ManuallyDrop::drop(&mut self.env);
            ManuallyDrop::drop(&mut self.children);
        }
    }
}

/// The address of the operation that children report to.
pub struct Parent<G, R>(NonNull<Gathering<G, R>>)
where
    G: Gather,
    R: Receiver<G::Value, G::Error>;

/// The receiver of a child: it leads back to the operation.
pub struct Child<G, R, P>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    parent: Parent<G, R>,
    place: P,
}

// SAFETY: all parts are `Send`; the rules say who uses them when.
unsafe impl<G, R> Sync for Gathering<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
}

// SAFETY: the operation is `Send`, and the rules keep its children apart.
unsafe impl<G, R> Send for Parent<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
}

impl<G, R> Clone for Parent<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<G, R> Copy for Parent<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
}

impl<G, R> Parent<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    /// The receiver of the child at `place`.
    #[inline]
    pub fn child<P>(self, place: P) -> Child<G, R, P> {
        Child { parent: self, place }
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
            lent: Lent::new(group.count()),
            group: UnsafeCell::new(Some(group)),
            above: EnvAbove::new(),
            receiver: UnsafeCell::new(Some(receiver)),
            _pinned: PhantomPinned,
        }
    }

    /// Makes the stop source of the children and their environment.
    ///
    /// # Safety
    /// Rule 1 or the exception in rule 3: nobody else looks, and no child that is running was lent another one.
    unsafe fn arm(&self) {
        // SAFETY: the receiver is in its place until rule 4; its environment and our stop source outlive the children,
        // which are what the scoped one is lent to.
        unsafe {
            let above = self.above.get();
            let stop = self.lent.children.arm(above.stop(), NonNull::from(self).cast(), Self::finish);
            *self.lent.env.get() = Some(ScopedEnv::with_in_place_stop(above, stop));
        }
    }

    /// # Safety
    /// Rule 4: called once, by the last to give back a count.
    unsafe fn finish(this: NonNull<()>) {
        // SAFETY: the caller's; the operation is alive until its receiver is completed.
        unsafe { Self::deliver(this.cast()) };
    }

    /// Completes the receiver. Always inlined: of a group that is inline nothing is left then but its outcome.
    ///
    /// # Safety
    /// As for `finish`.
    #[inline(always)]
    unsafe fn deliver(this: NonNull<Self>) {
        // SAFETY: rule 4: we are alone. The receiver may free the operation: nothing is touched once it is completed, and
        // the operation was taken by pointer.
        unsafe {
            let Self { lent, kept, receiver, .. } = this.as_ref();
            let kept = kept.get();
            // Only a group that has a stop source runs callbacks that may have panicked.
            let panic = if G::STOPS { lent.children.take_panic() } else { None };
            let outcome = match panic {
                Some(panic) => Outcome::Panicked(panic),
                // What is of no use for it is dropped in there.
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
        let parent = Parent(NonNull::from(self.as_ref().get_ref()));
        // SAFETY: rule 1: everything is ours until the children start, and alive until we give back our count (or,
        // for inline children, until we call `finish`, as the last). We are pinned, so children may point back.
        unsafe {
            let this = parent.0.as_ref();
            let Some(group) = (*this.group.get()).take() else { return };
            if let Some(receiver) = &*this.receiver.get_const() {
                this.above.ask(receiver);
            }
            let armed = G::STOPS && !G::COMPLETES.is_inline() && group.count() > 1;
            if armed {
                this.arm();
            }
            group.connect(&this.slots, &*this.kept.get_const(), parent);
            if armed {
                this.lent.children.link(this.above.get().stop());
            }
            G::start(&this.slots);
            if G::COMPLETES.is_inline() {
                Self::deliver(parent.0);
            } else {
                let children = NonNull::from(&*this.lent.children);
                Children::arrive(children, parent.0.cast(), Self::finish);
            }
        }
    }
}

#[diagnostic::do_not_recommend]
impl<G, R, P, V, E> Receiver<V, E> for Child<G, R, P>
where
    G: Accept<P, V, E>,
    R: Receiver<G::Value, G::Error>,
    P: Send,
{
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        // SAFETY: rule 2: we hold the child's count, so the operation is alive; after `arrive` nothing is touched.
        unsafe {
            let parent = self.parent.0.as_ref();
            let stop = G::accept(&*parent.kept.get_const(), self.place, outcome);
            if G::COMPLETES.is_inline() {
                // Rule 3, the exception: this child is done, those before it are, and those after it have not started.
                if let Some(reason) = stop
                    && (*parent.lent.env.get_const()).is_none()
                {
                    parent.arm();
                    parent.lent.children.request_stop(reason);
                }
                return;
            }
            if let Some(reason) = stop {
                parent.lent.children.request_stop(reason);
            }
            let children = NonNull::from(&*parent.lent.children);
            Children::arrive(children, self.parent.0.cast(), Gathering::<G, R>::finish);
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: rules 2 and 3: the child is not home, so both are in their places and only read.
        unsafe {
            let parent = self.parent.0.as_ref();
            match &*parent.lent.env.get_const() {
                Some(env) => env,
                None => parent.above.get(),
            }
        }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: rules 2 and 3: the child is not home, so the answer is in its place and only read.
        unsafe { self.parent.0.as_ref().above.enclosing() }
    }
}

/// Inline if all of a group are, else anywhere: the last child to complete decides, and nobody knows which it is.
pub(super) const fn together(all: Completes) -> Completes {
    if all.is_inline() { Completes::Inline } else { Completes::Anywhere }
}

impl<G, R> fmt::Debug for Gathering<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathering").field("children", &self.lent.children).finish_non_exhaustive()
    }
}

impl<G, R> fmt::Debug for Parent<G, R>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parent").finish_non_exhaustive()
    }
}

impl<G, R, P> fmt::Debug for Child<G, R, P>
where
    G: Gather,
    R: Receiver<G::Value, G::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").finish_non_exhaustive()
    }
}
