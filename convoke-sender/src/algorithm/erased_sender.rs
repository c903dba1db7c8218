//! A sender without its type, in memory of a frame allocator: what `AnySender` holds.

use core::pin::Pin;

use super::boxed::AnyReceiver;
use super::trampoline::Droppable;
use crate::{Receiver, Sender};
use convoke_core::raw::{FrameBox, Operation};
use convoke_core::{Env, ExecutorRef, FrameAllocator, unsize_box};

/// An operation without its type.
pub(super) type AnyWork = Pin<FrameBox<dyn Operation>>;

/// A sender without its type.
pub(super) type ErasedSender<V, E> = FrameBox<dyn Erased<V, E>>;

/// The methods of a sender whose type is erased.
pub(super) trait Erased<V, E>: Send + Droppable {
    /// Connects the sender, which is taken out, in memory of the environment that it is started in. Called once.
    fn connect(&mut self, receiver: AnyReceiver<V, E>) -> AnyWork;
    fn completes_on(&self, env: &Env) -> Option<ExecutorRef>;
    fn allocator(&self) -> Option<&FrameAllocator>;
}

/// Erases the type of a sender, in memory of the running task.
pub(super) fn erase<S>(sender: S) -> ErasedSender<S::Value, S::Error>
where
    S: Sender<Value: Send + 'static, Error: Send + 'static> + 'static,
{
    unsize_box!(FrameBox::in_task(Once(Some(sender))), dyn Erased<S::Value, S::Error>)
}

/// Returns the sender as one that can only be dropped.
pub(super) fn droppable<V, E>(sender: ErasedSender<V, E>) -> FrameBox<dyn Droppable> {
    unsize_box!(sender, dyn Droppable)
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
