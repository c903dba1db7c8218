//! `boxed()`: a sender with an erased type, and with tail calls. The types are those of `erased`; here they become a sender
//! and a receiver.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

pub use crate::erased::{AnyReceiver, AnySender};

use crate::erased::{
    AnyWork, Enclosing, Erased, ErasedOperation, ErasedSender, Next, Resumable, Trampoline, ask,
};
use crate::{Receiver, Sender};
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{FrameBox, Operation};
use convoke_core::{Env, ExecutorRef, FrameAllocator, Outcome, unsize_box};

impl<V, E> AnySender<V, E> {
    /// Erases the type of `sender`.
    pub fn new<S>(sender: S) -> Self
    where
        S: Sender<Value = V, Error = E> + 'static,
        V: Send + 'static,
        E: Send + 'static,
    {
        Self::of_erased(erase(sender))
    }
}

/// Erases the type of a sender, in memory of the running task.
fn erase<S>(sender: S) -> ErasedSender<S::Value, S::Error>
where
    S: Sender<Value: Send + 'static, Error: Send + 'static> + 'static,
{
    unsize_box!(FrameBox::in_task(Once(Some(sender))), dyn Erased<S::Value, S::Error>)
}

/// A sender that is taken out when it is connected: what lies in a box without its type cannot be moved otherwise.
struct Once<S>(Option<S>);

impl<S> Erased<S::Value, S::Error> for Once<S>
where
    S: Sender<Value: Send + 'static, Error: Send + 'static> + 'static,
{
    fn connect(&mut self, receiver: AnyReceiver<S::Value, S::Error>) -> AnyWork {
        let sender = self.0.take().expect("a boxed sender is connected once");
        let allocator = receiver.env().allocator().clone();
        let work = FrameBox::new_in(allocator, Sender::connect(sender, receiver));
        FrameBox::into_pin(unsize_box!(work, dyn Operation))
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        Sender::completes_on(self.0.as_ref()?, env)
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        Sender::allocator(self.0.as_ref()?)
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
            inner: ErasedOperation::new(self, AnyOperation::<V, E, R>::complete),
            receiver: UnsafeCell::new(Some(receiver)),
            _pinned: PhantomPinned,
        }
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        ask(|| self.erased()?.completes_on(env))
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        self.erased()?.allocator()
    }
}

/// The operation of [`AnySender`].
#[repr(C)]
pub struct AnyOperation<V, E, R> {
    // First, so that a pointer to it is a pointer to the operation.
    inner: ErasedOperation<V, E>,
    receiver: UnsafeCell<Option<R>>,
    _pinned: PhantomPinned,
}

impl<V, E, R: Receiver<V, E>> AnyOperation<V, E, R> {
    /// Completes the receiver.
    ///
    /// # Safety
    /// Called once, at the end, with the first field of a live operation, by its only user (rule 2 of `ErasedOperation`).
    unsafe fn complete(this: NonNull<ErasedOperation<V, E>>, outcome: Outcome<V, E>) {
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

#[diagnostic::do_not_recommend]
impl<V, E> Receiver<V, E> for AnyReceiver<V, E> {
    fn complete(self, outcome: Outcome<V, E>) {
        self.end_with(Next::End(outcome));
    }

    fn env(&self) -> &Env {
        self.env_of_work()
    }

    fn tail_call(self, sender: AnySender<V, E>) -> Result<(), (Self, AnySender<V, E>)> {
        self.end_with(Next::Sender(sender));
        Ok(())
    }

    fn enclosing(&self) -> Option<Enclosing> {
        Some(self.around())
    }
}

impl<V, E, R> fmt::Debug for AnyOperation<V, E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyOperation").finish_non_exhaustive()
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
