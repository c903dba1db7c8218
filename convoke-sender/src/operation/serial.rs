//! An operation whose users take turns: `start`, then the child that runs, then the completion of that child,
//! and so on until its receiver is completed. Algorithms describe the steps in safe code ([`Steps`]); the
//! [`SerialTurn`] that goes from step to step is the right to use the operation.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::{PhantomData, PhantomPinned};
use core::pin::Pin;
use core::ptr::NonNull;

use super::arrival::Arrival;
use super::posted::{Posted, Resume};
use crate::erased::{AnySender, Enclosing};
use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::env::Changes;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{Call, Operation, Runnable, ScopedEnv, Slot};
use convoke_core::{Env, Outcome, Panic};

/// The steps of a [`Serial`] operation, and the parts that they use.
pub trait Steps: Sized + Send {
    /// The work that the operation runs, one at a time.
    type Work: Sender;
    /// The value that the operation completes with.
    type Value;
    /// The error that the operation fails with.
    type Error;
    /// The receiver of the operation.
    type Receiver: Receiver<Self::Value, Self::Error>;
    /// The work that may take over the receiver at the end: [`Absent`] if there is none.
    type Next: Sender<Value = Self::Value, Error = Self::Error>;
    /// The field that may be used without the turn: an [`Arrival`], a [`Posted`], or `()`.
    type Shared: SerialShared<OutcomeOf<Self::Work>>;

    /// True if [`next_env`](Steps::next_env) may return an environment. Known at compile time, so that most graphs have no
    /// code for it.
    const NEXT_MAY_HAVE_ENV: bool = false;

    /// Takes the first step.
    fn start(turn: SerialTurn<Self>);

    /// Takes the step after the work has ended and its operation was destroyed.
    fn ended(turn: SerialTurn<Self>, outcome: OutcomeOf<Self::Work>);

    /// Returns the environment of the work.
    #[inline]
    fn env<'a>(&'a self, receiver: &'a Self::Receiver) -> &'a Env {
        receiver.env()
    }

    /// Returns the environment of the work that takes over at the end, if it is not that of the receiver.
    #[inline]
    fn next_env(&self) -> Option<&Env> {
        None
    }
}

/// The field of a [`Serial`] operation that may be used without the turn. Only the types of this module implement
/// it: the operation relies on getting the same rendezvous each time, and two threads ask for it at once.
pub trait SerialShared<T>: Send + sealed::Sealed {
    /// Returns the rendezvous of the step that starts work with the end of that work, if this is one.
    #[doc(hidden)]
    fn arrival(&self) -> Option<&Arrival<T>>;
}

impl<T> SerialShared<T> for () {
    #[inline]
    fn arrival(&self) -> Option<&Arrival<T>> {
        None
    }
}

impl<T> SerialShared<T> for Arrival<T> {
    #[inline]
    fn arrival(&self) -> Option<&Self> {
        Some(self)
    }
}

impl<T, B: Send> SerialShared<T> for Posted<B> {
    #[inline]
    fn arrival(&self) -> Option<&Arrival<T>> {
        None
    }
}

mod sealed {
    use super::{Arrival, Posted};

    pub trait Sealed {}

    impl Sealed for () {}
    impl<T> Sealed for Arrival<T> {}
    impl<B> Sealed for Posted<B> {}
}

/// Steps that hop: the turn waits in the queue of an executor.
pub trait Posts: Steps<Shared = Posted<SerialTurn<Self>>> {
    /// Takes the step on the executor; `call` tells whether the executor runs it or drops it.
    fn resumed(turn: SerialTurn<Self>, call: Call);
}

/// An operation that one [`SerialTurn`] at a time uses.
///
/// 1. There is one turn. `start`, which is called once, makes it. Only its holder uses `parts`, `receiver`
///    and `next`, and fills and empties `work`.
/// 2. While work runs, its receiver has the turn. The receiver reads `parts` and `receiver` and changes
///    nothing; they are not moved. The turn comes back when the work completes its receiver, which a sender
///    does once, after all other use of its operation (rules 1 and 2 of [`Sender`]).
/// 3. The operation is alive while the turn exists. [`SerialTurn::complete`] and [`SerialTurn::run_next`] use the turn up
///    and take the receiver; the operation may be freed from then on.
/// 4. `shared` may be used by the holder of the turn, and by a step that has passed its turn on and waits for
///    it at an [`Arrival`]: until it arrives there, the turn is not used up.
pub struct Serial<P: Steps> {
    // Dropped in this order: the work before the parts that it borrows, and these before the receiver.
    work: Slot<<P::Work as Sender>::Operation<WorkReceiver<P>>>,
    next: Slot<<P::Next as Sender>::Operation<NextReceiver<P>>>,
    shared: P::Shared,
    parts: UnsafeCell<P>,
    receiver: UnsafeCell<Option<P::Receiver>>,
    _pinned: PhantomPinned,
}

impl<P: Steps> Serial<P> {
    /// Creates an operation that has not started.
    #[inline]
    pub fn new(parts: P, shared: P::Shared, receiver: P::Receiver) -> Self {
        Self {
            work: Slot::new(),
            next: Slot::new(),
            shared,
            parts: UnsafeCell::new(parts),
            receiver: UnsafeCell::new(Some(receiver)),
            _pinned: PhantomPinned,
        }
    }
}

// SAFETY: rule 1: one holder of the turn at a time uses the parts, the receiver and the work, which are
// `Send`. The outcome of work that waits in an `Arrival` is `Send`: `Arrival` requires it.
unsafe impl<P: Steps> Sync for Serial<P> {}

impl<P: Steps> Operation for Serial<P> {
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        P::start(SerialTurn(NonNull::from(self.as_ref().get_ref())));
    }
}

/// The right to use a [`Serial`] operation: one pointer to it, which cannot be copied.
pub struct SerialTurn<P: Steps>(NonNull<Serial<P>>);

// SAFETY: the operation is `Send`, and rule 1 makes the holder of the turn its only user.
unsafe impl<P: Steps> Send for SerialTurn<P> {}

impl<P: Steps> SerialTurn<P> {
    const INLINE: bool = P::Work::COMPLETES.is_inline();

    #[inline]
    fn operation(&self) -> &Serial<P> {
        // SAFETY: rule 3: the turn exists, so the operation is alive.
        unsafe { self.0.as_ref() }
    }

    /// Returns the parts.
    #[inline]
    pub fn parts(&mut self) -> &mut P {
        // SAFETY: rule 1: `&mut self` is the only use of the only turn.
        unsafe { &mut *self.operation().parts.get() }
    }

    #[inline]
    fn peek(&self) -> &P {
        // SAFETY: rule 1: the parts change only through `&mut` to the turn, of which `&self` is a borrow.
        unsafe { &*self.operation().parts.get_const() }
    }

    /// Returns the receiver.
    #[inline]
    pub fn receiver(&self) -> &P::Receiver {
        // SAFETY: rules 1 and 3: the receiver is taken only when the turn is used up.
        let receiver = unsafe { &*self.operation().receiver.get_const() };
        receiver.as_ref().expect("the receiver is there as long as the turn is")
    }

    /// Takes the receiver, and uses the turn up (rule 3); unless `f` returns the receiver.
    #[inline]
    fn take_receiver(self, f: impl FnOnce(P::Receiver) -> Option<P::Receiver>) -> Option<Self> {
        let receiver = self.operation().receiver.get();
        // SAFETY: rule 1: this is the only turn. Rule 3: if `f` does not return the receiver, the turn ends here, and
        // nothing is touched any more; if it does, the operation is still alive.
        unsafe {
            let taken = (*receiver).take().expect("the receiver is there as long as the turn is");
            *receiver = Some(f(taken)?);
        }
        Some(self)
    }

    /// Returns a changed environment of the receiver, for work of this operation.
    ///
    /// It is stored in the parts, and used only while the receiver stays where it is.
    #[inline]
    pub(crate) fn scoped_env(&self, changes: Changes) -> ScopedEnv {
        // SAFETY: rules 1 to 3: the receiver, which the environment around belongs to, is not moved before the turn is
        // used up, and the work that uses the scoped environment has ended by then, or has the turn.
        unsafe { ScopedEnv::new(self.receiver().env(), changes) }
    }

    /// Starts work in the operation. [`Steps::ended`] gets the turn back.
    #[inline]
    pub fn run(self, work: P::Work) {
        let slot = NonNull::from(&self.operation().work);
        // SAFETY: rule 1: the slot is ours, and empty: `WorkReceiver` empties it before it gives the turn
        // back. The operation is pinned since its start. Rules 2 and 3: it outlives the work.
        unsafe { Slot::run(slot, || work.connect(WorkReceiver(self))) };
    }

    /// Starts work in the operation. Returns the turn and the outcome if the work has ended by now; else
    /// [`Steps::ended`] gets them, always so in an operation without an [`Arrival`]. A loop of such calls does
    /// not grow the stack.
    #[inline]
    pub fn run_in_loop(self, work: P::Work) -> Option<(Self, OutcomeOf<P::Work>)> {
        let operation = self.0;
        let Some(arrival) = self.operation().shared.arrival() else {
            // The operation may be freed from here on.
            self.run(work);
            return None;
        };
        arrival.reset();
        self.run(work);
        // SAFETY: rule 4: this step has not arrived yet, so the turn was not used up and the operation is
        // alive. Inline work has ended (rule 3 of `Sender`) and left the turn to this step.
        let arrival = unsafe { &operation.as_ref().shared }.arrival()?;
        if !Self::INLINE && !arrival.arrive() {
            return None;
        }
        // The completion came first, and has left its turn here.
        Self(operation).settle()
    }

    /// Takes the outcome that was left at the rendezvous, and destroys the work.
    #[inline]
    fn settle(self) -> Option<(Self, OutcomeOf<P::Work>)> {
        let arrival = self.operation().shared.arrival()?;
        // SAFETY: rule 1 of `Arrival`: the holder of the turn is the second to arrive, or the work is inline.
        let outcome = unsafe { arrival.take() }?;
        let outcome = self.clear(outcome);
        Some((self, outcome))
    }

    /// Destroys the work, which has completed with `outcome`.
    #[inline]
    fn clear(&self, outcome: OutcomeOf<P::Work>) -> OutcomeOf<P::Work> {
        // SAFETY: rule 2: the work has completed its receiver, as the turn is back. Rule 1: the slot is ours.
        unsafe { self.operation().work.clear_after(outcome) }
    }

    /// Gives the receiver to `next` and starts that. Uses the turn up. If `next` has an environment of its own,
    /// it gets the turn instead: the environment borrows from that of the receiver, which stays where it is.
    #[inline]
    pub fn run_next(self, next: P::Next) {
        let slot = NonNull::from(&self.operation().next);
        let mut direct = None;
        let receiver = match P::NEXT_MAY_HAVE_ENV && self.peek().next_env().is_some() {
            false => {
                self.take_receiver(|receiver| {
                    direct = Some(receiver);
                    None
                });
                NextReceiver::Direct(direct.expect("taken above"))
            }
            true => NextReceiver::InOwnEnv(self),
        };
        // SAFETY: rule 1: the slot is ours, and empty: this function is called at most once, as it uses the
        // only turn up. The operation is pinned, and alive until its receiver is completed, by `next`.
        unsafe { Slot::run(slot, || next.connect(receiver)) };
    }

    /// Completes the receiver. Uses the turn up.
    #[inline]
    pub fn complete(self, outcome: Outcome<P::Value, P::Error>) {
        self.take_receiver(|receiver| {
            receiver.complete(outcome);
            None
        });
    }
}

impl<P: Posts> SerialTurn<P> {
    /// Turns the turn into a unit of work for an executor. [`Posts::resumed`] gets it back.
    #[inline]
    pub fn into_runnable(self) -> Runnable {
        let posted = NonNull::from(&self.operation().shared);
        // SAFETY: the operation is pinned since its start. Rule 3: it is alive until the turn, which the
        // runnable carries, is used up. There is one turn, so there is no other runnable.
        unsafe { Posted::runnable(posted, self) }
    }
}

impl<P: Posts> Resume for SerialTurn<P> {
    #[inline]
    fn resume(self, call: Call) {
        P::resumed(self, call);
    }
}

/// The receiver of the work of a [`Serial`] operation: it has the turn while the work runs.
pub struct WorkReceiver<P: Steps>(SerialTurn<P>);

#[diagnostic::do_not_recommend]
impl<P, V, E> Receiver<V, E> for WorkReceiver<P>
where
    P: Steps<Work: Sender<Value = V, Error = E>>,
{
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        let Self(turn) = self;
        let Some(arrival) = turn.operation().shared.arrival() else {
            let outcome = turn.clear(outcome);
            return P::ended(turn, outcome);
        };
        // SAFETY: rule 1 of `Arrival`: the outcome is ours until we arrive, or until inline work has ended.
        unsafe { arrival.put(outcome) };
        if !SerialTurn::<P>::INLINE
            && arrival.arrive()
            && let Some((turn, outcome)) = turn.settle()
        {
            P::ended(turn, outcome);
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        self.0.peek().env(self.0.receiver())
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        self.0.receiver().enclosing()
    }
}

/// The receiver of the work that takes over at the end of a [`Serial`] operation.
pub enum NextReceiver<P: Steps> {
    /// The receiver of the operation itself: a tail call costs no frame.
    Direct(P::Receiver),
    /// The turn, for work with an environment of its own.
    InOwnEnv(SerialTurn<P>),
}

#[diagnostic::do_not_recommend]
impl<P, V, E> Receiver<V, E> for NextReceiver<P>
where
    P: Steps<Value = V, Error = E>,
{
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        match self {
            Self::Direct(receiver) => receiver.complete(outcome),
            Self::InOwnEnv(turn) if P::NEXT_MAY_HAVE_ENV => turn.complete(outcome),
            // Left out of graphs without such work, which are inlined only if they are small.
            Self::InOwnEnv(_) => unreachable!("`run_next` has asked the same constant"),
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        match self {
            Self::Direct(receiver) => receiver.env(),
            Self::InOwnEnv(turn) => turn.peek().next_env().unwrap_or_else(|| turn.receiver().env()),
        }
    }

    fn tail_call(self, sender: AnySender<V, E>) -> Result<(), (Self, AnySender<V, E>)> {
        match self {
            Self::Direct(receiver) => {
                receiver.tail_call(sender).map_err(|(receiver, sender)| (Self::Direct(receiver), sender))
            }
            Self::InOwnEnv(turn) => {
                // Caught: the program may implement the executor.
                let executor = Panic::catch(|| turn.peek().next_env().map(|env| env.executor().clone()));
                let Ok(executor) = executor else { return Err((Self::InOwnEnv(turn), sender)) };
                let mut refused = None;
                let turn = turn.take_receiver(|receiver| {
                    let (receiver, sender) = receiver.tail_call(sender.in_env_of(executor)).err()?;
                    refused = Some(sender);
                    Some(receiver)
                });
                match (turn, refused) {
                    (Some(turn), Some(sender)) => Err((Self::InOwnEnv(turn), sender)),
                    _ => Ok(()),
                }
            }
        }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        match self {
            Self::Direct(receiver) => receiver.enclosing(),
            Self::InOwnEnv(turn) => turn.receiver().enclosing(),
        }
    }
}

impl<P: Steps> fmt::Debug for NextReceiver<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextReceiver").finish_non_exhaustive()
    }
}

/// The sender that is not there: of operations without such a part.
pub struct Absent<V, E>(core::convert::Infallible, PhantomData<fn() -> (V, E)>);

/// The operation that is not there.
#[derive(Debug)]
pub enum AbsentOperation {}

impl Operation for AbsentOperation {
    unsafe fn start(self: Pin<&mut Self>) {}
}

// SAFETY: rules 1 to 3 of `Sender`: there is no value of this type.
#[diagnostic::do_not_recommend]
unsafe impl<V, E> Sender for Absent<V, E> {
    type Value = V;
    type Error = E;
    type Operation<R: Receiver<V, E>> = AbsentOperation;

    fn connect<R: Receiver<V, E>>(self, _: R) -> AbsentOperation {
        match self.0 {}
    }
}

impl<P: Steps> fmt::Debug for Serial<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serial").finish_non_exhaustive()
    }
}

impl<P: Steps> fmt::Debug for SerialTurn<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SerialTurn").finish_non_exhaustive()
    }
}

impl<P: Steps> fmt::Debug for WorkReceiver<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkReceiver").finish_non_exhaustive()
    }
}

impl<V, E> fmt::Debug for Absent<V, E> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}
