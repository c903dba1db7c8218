//! A sender without its type, in memory of a frame allocator: what `AnySender` holds.

#![allow(unsafe_code)]

use core::pin::Pin;

use super::boxed::AnyReceiver;
use super::trampoline::Droppable;
use crate::{Receiver, Sender};
use convoke_core::raw::{FrameBox, Operation};
use convoke_core::{Env, ExecutorRef, FrameAllocator};

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
    let sender = FrameBox::in_task(Once(Some(sender)));
    // SAFETY: unsizing does not change the address.
    unsafe { sender.with_pointer(|sender| sender as *mut dyn Erased<S::Value, S::Error>) }
}

/// Returns the sender as one that can only be dropped.
pub(super) fn droppable<V, E>(sender: ErasedSender<V, E>) -> FrameBox<dyn Droppable> {
    // SAFETY: the cast to a supertrait does not change the address.
    unsafe { sender.with_pointer(|sender| sender as *mut dyn Droppable) }
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
        // SAFETY: unsizing does not change the address.
        FrameBox::into_pin(unsafe { work.with_pointer(|work| work as *mut dyn Operation) })
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        Sender::completes_on(self.0.as_ref()?, env)
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        Sender::allocator(self.0.as_ref()?)
    }
}
