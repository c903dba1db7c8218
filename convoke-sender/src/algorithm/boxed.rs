//! `boxed()`: a sender with an erased type, and with tail calls.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use super::erased_sender::{AnyWork, ErasedSender, droppable, erase};
use super::trampoline::{Enclosing, Head, Resumable, Trampoline, ask, drop_sender};
use crate::operation::{EnvAbove, Handshake};
use crate::{Receiver, Sender};
use convoke_core::env::Changes;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{Operation, ScopedEnv, abort_on_unwind};
use convoke_core::{Env, ExecutorRef, FrameAllocator, Never, Outcome, Panic};

/// Any sender with this value and error, for recursion, for struct fields, and for choosing between senders
/// at run time.
///
/// A boxed sender that ends in another one, as the last step of a recursion does, is a tail call: the first
/// is destroyed and the second replaces it. Neither stack nor memory grows with the depth.
///
/// Boxed senders nested in one another take memory each, but do not grow the stack either: neither when they
/// start and complete nor when they are dropped. From a depth of 32 on, the start of a nested one is deferred
/// until the frames in between have returned.
///
/// - *Completes with* the outcome of the sender inside.
/// - *If dropped* before it starts, the sender inside is dropped.
/// - *Runs on* the thread that starts it, and on the executors of the sender inside. It lies in memory of the
///   task that boxes it, and its operation in that of the environment that it is started in.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// fn count_down(n: u32) -> AnySender<&'static str> {
///     let next =
///         |n| if n == 0 { just("lift-off").boxed() } else { count_down(n - 1) };
///     just(n).let_value(next).boxed()
/// }
/// assert_eq!(sync_wait(count_down(100_000)), Outcome::Value("lift-off"));
/// ```
#[must_use = "a sender does nothing until it is started"]
pub struct AnySender<V, E = Never> {
    /// Taken out once: by `drop`, or by `into_inner`.
    sender: Option<ErasedSender<V, E>>,
    /// The executor that a tail call sees, if the work that calls sees another one than the work above.
    executor: Option<ExecutorRef>,
}

impl<V, E> AnySender<V, E> {
    /// Erases the type of `sender`.
    pub fn new<S>(sender: S) -> Self
    where
        S: Sender<Value = V, Error = E> + 'static,
        V: Send + 'static,
        E: Send + 'static,
    {
        Self { sender: Some(erase(sender)), executor: None }
    }

    /// Returns `self`, which is boxed already.
    pub fn boxed(self) -> Self {
        self
    }

    /// Returns the sender as one that is tail-called by work whose environment has this executor, if any.
    pub(crate) fn in_env_of(mut self, executor: Option<ExecutorRef>) -> Self {
        self.executor = executor;
        self
    }

    fn into_inner(mut self) -> ErasedSender<V, E> {
        self.sender.take().expect("a boxed sender is taken out once")
    }
}

impl<V, E> Drop for AnySender<V, E> {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            drop_sender(droppable(sender));
        }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the operation completes the receiver last, with the outcome of its last
// work, which is destroyed by then. Rule 3: `COMPLETES` is the default, `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send + 'static, E: Send + 'static> Sender for AnySender<V, E> {
    type Value = V;
    type Error = E;
    type Operation<R: Receiver<V, E>> = AnyOperation<V, E, R>;

    fn connect<R: Receiver<V, E>>(self, receiver: R) -> AnyOperation<V, E, R> {
        AnyOperation {
            inner: Inner {
                head: Head::new(Inner::<V, E>::resume),
                enclosing: Cell::new(None),
                current: UnsafeCell::new(None),
                next: UnsafeCell::new(Some(Next::Sender(self))),
                rendezvous: Handshake::new(),
                env: EnvAbove::new(),
                own_env: UnsafeCell::new(None),
                complete: AnyOperation::<V, E, R>::complete,
            },
            receiver: UnsafeCell::new(Some(receiver)),
            _pinned: PhantomPinned,
        }
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        ask(|| self.sender.as_ref()?.completes_on(env))
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        self.sender.as_ref()?.allocator()
    }
}

/// The operation of [`AnySender`].
#[repr(C)]
pub struct AnyOperation<V, E, R> {
    // First, so that a pointer to it is a pointer to the operation.
    inner: Inner<V, E>,
    receiver: UnsafeCell<Option<R>>,
    _pinned: PhantomPinned,
}

/// The part of the operation that does not depend on the type of its receiver.
///
/// 1. One piece of work, `current`, runs at a time. It ends when it completes its receiver or hands a tail
///    call to it. The receiver writes either to `next`, and is the only user of that while the work runs.
/// 2. The thread that started the work and the one that ends it meet at `rendezvous`. The second to arrive is
///    then the only user of everything: it destroys `current` and continues with `next`.
/// 3. `env` is written before the first work starts. It points to the environment of `receiver`, which is not
///    moved until the end. `own_env` borrows from it, and is written only between two pieces of work. `enclosing` is written at the same time; it is compared and never dereferenced.
#[repr(C)]
struct Inner<V, E> {
    // First, so that a pointer to it is a pointer to all of this.
    head: Head,
    enclosing: Cell<Option<Enclosing>>,
    current: UnsafeCell<Option<AnyWork>>,
    next: UnsafeCell<Option<Next<V, E>>>,
    rendezvous: Handshake,
    env: EnvAbove,
    /// The environment of the work, if it has another executor than that of the receiver.
    own_env: UnsafeCell<Option<ScopedEnv>>,
    complete: unsafe fn(NonNull<Self>, Outcome<V, E>),
}

enum Next<V, E> {
    Sender(AnySender<V, E>),
    End(Outcome<V, E>),
}

// SAFETY: all parts are `Send` (values and errors by the bounds of `AnySender`), rules 1 and 2 give them to
// one thread at a time, and the environment is `Sync`.
unsafe impl<V: Send, E: Send> Send for Inner<V, E> {}

impl<V, E> Inner<V, E> {
    /// Runs `next`, again and again, until a piece of work does not end at once or an outcome was delivered.
    ///
    /// # Safety
    /// Rule 2: the caller is the only user of the operation, which is pinned, and touches nothing of it
    /// afterwards.
    unsafe fn resume(head: NonNull<Head>, trampoline: &Trampoline) {
        let this = head.cast::<Self>();
        // SAFETY: the head is the first field (`repr(C)`), and the pointer was made from the whole operation.
        // Rule 2: we are the only user at the beginning of each round: in the first by the contract of `Resumable::new`,
        // later because `arrive` returned true. The work that is destroyed has ended. Rule 3: the environment above
        // outlives `own_env`, and no work that could use that runs here.
        unsafe {
            // Work that starts in here is directly inside `here`; receivers that complete in here are inside
            // `around`.
            let (here, around) = (Enclosing::new(head), this.as_ref().enclosing.get());
            while let Some(next) = (*this.as_ref().next.get()).take() {
                // The destructor of the work may panic: the receiver gets its outcome even so.
                let panic = Panic::of_drop((*this.as_ref().current.get()).take());
                trampoline.set_at(around);
                let mut sender = match (next, panic) {
                    (Next::Sender(mut sender), None) => {
                        if let Some(executor) = sender.executor.take() {
                            let changes = Changes::new().executor(executor);
                            let own = ScopedEnv::new(this.as_ref().env.get(), changes);
                            let _ = Panic::of_drop((*this.as_ref().own_env.get()).replace(own));
                        }
                        sender.into_inner()
                    }
                    (Next::Sender(sender), Some(panic)) => {
                        let outcome = Outcome::Panicked(panic).after_drop_of(sender);
                        return (this.as_ref().complete)(this, outcome);
                    }
                    (Next::End(outcome), None) => return (this.as_ref().complete)(this, outcome),
                    (Next::End(outcome), Some(panic)) => {
                        return (this.as_ref().complete)(this, outcome.or_panic(panic));
                    }
                };
                this.as_ref().rendezvous.reset();
                trampoline.set_at(Some(here));
                // The box is freed with the closure: the work, which may end the task, has taken the sender out.
                let work = abort_on_unwind(move || sender.connect(AnyReceiver { operation: this }));
                let work = (*this.as_ref().current.get()).insert(work);
                abort_on_unwind(|| work.as_mut().start());
                if !this.as_ref().rendezvous.arrive() {
                    return;
                }
            }
        }
    }
}

impl<V, E, R: Receiver<V, E>> AnyOperation<V, E, R> {
    /// Completes the receiver.
    ///
    /// # Safety
    /// Called once, at the end, with the first field of a live operation, by its only user (rule 2).
    unsafe fn complete(this: NonNull<Inner<V, E>>, outcome: Outcome<V, E>) {
        // SAFETY: `inner` is the first field of the operation (`repr(C)`), and the pointer was made from the
        // whole operation. Rule 2: the caller is the only user.
        if let Some(receiver) = unsafe { (*this.cast::<Self>().as_ref().receiver.get()).take() } {
            receiver.complete(outcome);
        }
    }
}

impl<V: Send, E: Send, R: Receiver<V, E>> Operation for AnyOperation<V, E, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: nothing has started yet, so this call is the only user; the operation is pinned. If
        // `tail_call` takes the sender, it takes the obligation too: the operation may be freed already, and
        // nothing is touched.
        unsafe {
            let next = this.as_ref().inner.next.get();
            let receiver = this.as_ref().receiver.get();
            let (Some(Next::Sender(sender)), Some(above)) = ((*next).take(), (*receiver).take()) else {
                return;
            };
            if let Err((above, sender)) = above.tail_call(sender) {
                *next = Some(Next::Sender(sender));
                let above = (*receiver).insert(above);
                let enclosing = above.enclosing();
                this.as_ref().inner.env.ask(above);
                this.as_ref().inner.enclosing.set(enclosing);
                Trampoline::resume(Resumable::new(this.cast()), enclosing);
            }
        }
    }
}

/// The receiver of the sender in the box: a pointer to the operation, independent of the type of its
/// receiver.
pub struct AnyReceiver<V, E> {
    operation: NonNull<Inner<V, E>>,
}

// SAFETY: the operation is `Send`, and rules 1 and 2 say when the receiver may use it.
unsafe impl<V, E> Send for AnyReceiver<V, E> {}

impl<V, E> AnyReceiver<V, E> {
    fn end_with(self, next: Next<V, E>) {
        // SAFETY: rule 1: the work is running, so the operation is alive and `next` is ours. Rule 2: after
        // `arrive` returned true we are the only user.
        unsafe {
            *self.operation.as_ref().next.get() = Some(next);
            if self.operation.as_ref().rendezvous.arrive() {
                let head = self.operation.cast::<Head>();
                Trampoline::resume(Resumable::new(head), Some(Enclosing::new(head)));
            }
        }
    }
}

#[diagnostic::do_not_recommend]
impl<V, E> Receiver<V, E> for AnyReceiver<V, E> {
    fn complete(self, outcome: Outcome<V, E>) {
        self.end_with(Next::End(outcome));
    }

    fn env(&self) -> &Env {
        // SAFETY: rule 3: `env` was written before the work started, and the receiver is not moved while the
        // work runs. `own_env` is not written while it runs.
        unsafe {
            let operation = self.operation.as_ref();
            (*operation.own_env.get_const()).as_deref().unwrap_or_else(|| operation.env.get())
        }
    }

    fn tail_call(self, sender: AnySender<V, E>) -> Result<(), (Self, AnySender<V, E>)> {
        self.end_with(Next::Sender(sender));
        Ok(())
    }

    fn enclosing(&self) -> Option<Enclosing> {
        Some(Enclosing::new(self.operation))
    }
}

impl<V, E> fmt::Debug for AnySender<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnySender").finish_non_exhaustive()
    }
}

impl<V, E, R> fmt::Debug for AnyOperation<V, E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyOperation").finish_non_exhaustive()
    }
}

impl<V, E> fmt::Debug for AnyReceiver<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyReceiver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::AnySender;
    use crate::Receiver;
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, stopped_env};
    use convoke_core::raw::Operation;

    const DEEP: usize = if cfg!(miri) { 100 } else { 1_000_000 };

    /// The number of live values, and its maximum so far.
    #[derive(Clone, Default)]
    struct Alive(Arc<(AtomicUsize, AtomicUsize)>);

    impl Alive {
        fn one_more(&self) -> Self {
            self.0.1.fetch_max(self.0.0.fetch_add(1, Relaxed) + 1, Relaxed);
            self.clone()
        }

        fn most(&self) -> usize {
            self.0.1.load(Relaxed)
        }
    }

    /// A sender with a value that lives as long as its operation. The operation completes the receiver
    /// itself.
    struct Holding<S>(S, OneAlive);

    struct OneAlive(Alive);

    impl Drop for OneAlive {
        fn drop(&mut self) {
            self.0.0.0.fetch_sub(1, Relaxed);
        }
    }

    struct HoldingOperation<O>(O, #[expect(dead_code, reason = "stored to be dropped")] OneAlive);

    // SAFETY: rules 1 to 3 of `Sender`: the inner operation completes the receiver and keeps to them.
    unsafe impl<S: Sender> Sender for Holding<S> {
        type Value = S::Value;
        type Error = S::Error;
        type Operation<R: Receiver<S::Value, S::Error>> = HoldingOperation<S::Operation<R>>;

        fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> Self::Operation<R> {
            HoldingOperation(self.0.connect(receiver), self.1)
        }
    }

    impl<O: Operation> Operation for HoldingOperation<O> {
        unsafe fn start(self: Pin<&mut Self>) {
            // SAFETY: the first field is pinned with the operation, and started once because the operation
            // is.
            unsafe { self.map_unchecked_mut(|this| &mut this.0).start() };
        }
    }

    fn count<S>(n: usize, step: impl Fn() -> S + Send + 'static, alive: Alive) -> AnySender<u64>
    where
        S: Sender<Value = (), Error = Never> + 'static,
    {
        let one = OneAlive(alive.one_more());
        let work =
            step().let_value(move |()| if n == 0 { just(7).boxed() } else { count(n - 1, step, alive) });
        Holding(work, one).boxed()
    }

    #[test]
    fn a_million_tail_calls_inline_grow_neither_stack_nor_memory() {
        let alive = Alive::default();
        let running = Connected::new(count(DEEP, || just(()), alive.clone())).start();
        assert_eq!(running.outcome(), Outcome::Value(7));
        assert_eq!(alive.most(), 2, "the one that calls and the one that is called");
    }

    #[test]
    fn a_million_tail_calls_on_an_executor_grow_neither_stack_nor_memory() {
        let (alive, by_hand) = (Alive::default(), ByHand::new());
        let executor = by_hand.clone();
        let running = Connected::new(count(DEEP, move || schedule(&executor), alive.clone())).start();
        assert_eq!(by_hand.run_all(), DEEP + 1);
        assert_eq!(running.outcome(), Outcome::Value(7));
        assert_eq!(alive.most(), 2, "the one that calls and the one that is called");
    }

    #[test]
    fn a_panic_in_it_is_the_outcome() {
        let sender = just(1).let_value(|_| -> AnySender<u8> { panic!("boom") }).boxed();
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn a_stop_reaches_the_work_in_the_box_also_after_a_tail_call() {
        assert_eq!(
            Connected::with_env(never::<u8>().boxed(), stopped_env()).start().outcome(),
            Outcome::Stopped
        );
        let source = StopSource::new();
        let sender = just(()).let_value(|()| never::<u8>().boxed()).boxed();
        let running = Connected::stoppable(sender, &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn the_caller_is_destroyed_when_the_callee_runs() {
        let (gate, callee) = (Gate::<()>::new(), Gate::<u8>::new());
        let count = DropCount::new();
        let waiting = callee.clone();
        let sender = gate.holding(count.token()).let_value(move |()| waiting.sender().boxed()).boxed();
        let running = Connected::new(sender).start();
        gate.complete(Outcome::Value(()));
        assert_eq!(count.dropped(), 1);
        callee.complete(Outcome::Value(3));
        assert_eq!(running.outcome(), Outcome::Value(3));
    }

    #[test]
    fn knows_where_it_completes_if_the_sender_in_it_does() {
        let by_hand = ByHand::new();
        let executor = schedule(&by_hand).boxed().completes_on(&Env::new());
        assert_eq!(executor, Some(ExecutorRef::new(by_hand)));
    }

    #[test]
    fn dropping_it_unstarted_drops_the_sender_in_it() {
        let count = DropCount::new();
        drop(Connected::new(just(count.token()).boxed()));
        assert_eq!(count.dropped(), 1);
    }

    #[test]
    fn threads_may_complete_it_while_it_is_being_started() {
        const ROUNDS: u32 = if cfg!(miri) { 4 } else { 1_500 };
        let gate = Gate::<u32>::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..2 * ROUNDS {
                    while !gate.complete(Outcome::Value(round)) {
                        std::thread::yield_now();
                    }
                }
            });
            for round in 0..ROUNDS {
                let second = gate.clone();
                let sender =
                    gate.sender().let_value(move |first| second.sender().then(move |v| (first, v)).boxed());
                let pair = (2 * round, 2 * round + 1);
                assert_eq!(Connected::new(sender.boxed()).start().wait(), Outcome::Value(pair));
            }
        });
    }
}
