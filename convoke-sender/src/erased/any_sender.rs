//! A sender without its type, in memory of a frame allocator. It can be stored, handed over and dropped here; that it is
//! a sender itself says `algorithm::boxed`.

use core::fmt;
use core::pin::Pin;

use super::erased_operation::AnyReceiver;
use super::trampoline::{Droppable, drop_sender};
use convoke_core::raw::{FrameBox, Operation};
use convoke_core::{Env, ExecutorRef, FrameAllocator, Never, unsize_box};

/// An operation without its type.
pub(crate) type AnyWork = Pin<FrameBox<dyn Operation>>;

/// A sender without its type.
pub(crate) type ErasedSender<V, E> = FrameBox<dyn Erased<V, E>>;

/// The methods of a sender whose type is erased.
pub(crate) trait Erased<V, E>: Send + Droppable {
    /// Connects the sender, which is taken out, in memory of the environment that it is started in. Called once.
    fn connect(&mut self, receiver: AnyReceiver<V, E>) -> AnyWork;
    fn completes_on(&self, env: &Env) -> Option<ExecutorRef>;
    fn allocator(&self) -> Option<&FrameAllocator>;
}

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
    /// The executor for a tail call, if the calling work runs on another one than its parent.
    executor: Option<ExecutorRef>,
}

impl<V, E> AnySender<V, E> {
    pub(crate) fn of_erased(sender: ErasedSender<V, E>) -> Self {
        Self { sender: Some(sender), executor: None }
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

    /// Takes the executor that a tail call sees, if it sees another one than the work above.
    pub(crate) fn take_executor(&mut self) -> Option<ExecutorRef> {
        self.executor.take()
    }

    pub(crate) fn erased(&self) -> Option<&ErasedSender<V, E>> {
        self.sender.as_ref()
    }

    pub(crate) fn into_inner(mut self) -> ErasedSender<V, E> {
        self.sender.take().expect("a boxed sender is taken out once")
    }
}

impl<V, E> Drop for AnySender<V, E> {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            drop_sender(unsize_box!(sender, dyn Droppable));
        }
    }
}

impl<V, E> fmt::Debug for AnySender<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnySender").finish_non_exhaustive()
    }
}
