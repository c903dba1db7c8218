//! The end of a child: its outcome goes to the scope (`ToScope`), or to a handle (`ToHandle`). And its
//! connection to the scope: through the parent link in the scope's block (`SharedLink`), or one of its own
//! (`OwnLink`).

#![allow(unsafe_code)]

use core::marker::PhantomData;
use std::sync::Arc;

use convoke_core::raw::OutOfLine;
use convoke_core::{Env, Outcome, Panic};

use super::block::{Block, BlockOf, ChildEnd, Failure, LeavingChild};
use super::output::ChildOutput;
use crate::task::{
    BehindHandle, Ending, Inside, Leaving, Left, OutcomeSlot, ParentLink, TaskId, Unheard, WithHandle,
};

/// The connection of a child to its scope: through the parent link in the block, or through one inside the
/// child.
///
/// # Safety
/// Contract 1 of [`Ending`]: `own_link` returns a part of `self`, the same each time.
#[expect(private_interfaces, reason = "a closed trait: other crates cannot name it")]
pub unsafe trait Attach<O>: Sized {
    /// Returns the parent link of the child, if it is not the one in the block.
    #[inline]
    fn own_link(&self) -> Option<&ParentLink> {
        None
    }

    /// Removes a child that has done its part from the block.
    #[inline]
    fn finished(&self, child: LeavingChild<'_, O>) -> Left {
        child.finish()
    }

    /// Removes a child that failed or was stopped from the block.
    fn ended(&self, child: LeavingChild<'_, O>, end: ChildEnd<O>) -> Left {
        child.end(end)
    }

    /// Publishes the name of a child that is in the list and does not run yet. Called once, on a thread that
    /// holds no lock. `self` is a part of the child.
    #[inline]
    fn announce(&self, child: TaskId) {
        let _ = child;
    }

    /// Returns the name of the child, if it has one.
    #[inline]
    fn name(&self) -> Option<&Arc<str>> {
        None
    }
}

/// An ending of a child that contains its connection to the scope.
pub(super) trait Attached<O> {
    type Attach: Attach<O>;

    /// Returns the connection.
    fn attachment(&self) -> &Self::Attach;
}

/// The connection of a child through the parent link in the scope's block.
pub(super) struct SharedLink;

// SAFETY: it has no link of its own.
unsafe impl<O> Attach<O> for SharedLink {}

/// The connection of a child on another executor: a parent link inside the task.
pub(super) struct OwnLink(OutOfLine<ParentLink>);

impl OwnLink {
    /// Creates the link of a child in this environment, under the parent of the scope.
    pub(super) fn new<O>(env: Env, block: &Block<O>) -> Self {
        Self(OutOfLine::new(block.link.with_env(env)))
    }
}

// SAFETY: the link is a field, and does not change.
unsafe impl<O> Attach<O> for OwnLink {
    fn own_link(&self) -> Option<&ParentLink> {
        Some(&self.0)
    }
}

/// The ending of a child whose failure is the scope's.
pub(super) struct ToScope<O, W> {
    attachment: W,
    _scope: PhantomData<fn(O)>,
}

impl<O, W: Attach<O>> ToScope<O, W> {
    /// Creates the ending of a child with this connection.
    #[inline]
    pub(super) fn new(attachment: W) -> Self {
        Self { attachment, _scope: PhantomData }
    }
}

impl<O, W: Attach<O>> Attached<O> for ToScope<O, W> {
    type Attach = W;

    #[inline]
    fn attachment(&self) -> &W {
        &self.attachment
    }
}

// SAFETY: contract 1 is that of `Attach`.
unsafe impl<O, T: ChildOutput<O>, W: Attach<O>> Ending<T> for ToScope<O, W> {
    type After = ();

    #[inline]
    fn own_link(&self) -> Option<&ParentLink> {
        self.attachment.own_link()
    }

    fn name(&self) -> Option<Arc<str>> {
        self.attachment.name().cloned()
    }

    #[inline]
    fn ended(&self, task: &Inside, outcome: &mut Outcome<T>) {
        name_panic(task, self.attachment.name(), outcome);
    }

    #[inline(always)]
    fn deliver(&self, task: Leaving<'_>, outcome: OutcomeSlot<'_, T>) -> (Left, ()) {
        let child = LeavingChild::new(task);
        let end = match outcome.take() {
            Outcome::Value(value) => match Panic::catch(|| value.failure()) {
                Ok(None) => return (self.attachment.finished(child), ()),
                Ok(Some(output)) => ChildEnd::Failed(Failure::Output(output)),
                Err(panic) => ChildEnd::Failed(Failure::Panic(panic)),
            },
            Outcome::Panicked(panic) => ChildEnd::Failed(Failure::Panic(panic)),
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped => ChildEnd::Stopped,
        };
        (self.attachment.ended(child, end), ())
    }
}

/// The ending of a child with a handle of kind `K`.
pub(super) type ToHandle<O, W, K> = WithHandle<BehindChildHandle<O, W>, K>;

/// The part of the ending of a child with a handle that tells the scope.
pub(super) struct BehindChildHandle<O, W>(ToScope<O, W>);

impl<O, W: Attach<O>> BehindChildHandle<O, W> {
    #[inline]
    pub(super) fn new(attachment: W) -> Self {
        Self(ToScope::new(attachment))
    }
}

impl<O, W: Attach<O>, K: crate::task::HandleKind> Attached<O> for ToHandle<O, W, K> {
    type Attach = W;

    #[inline]
    fn attachment(&self) -> &W {
        &self.inner().0.attachment
    }
}

// SAFETY: contract 1 is that of `Attach`.
unsafe impl<O, W: Attach<O>> BehindHandle for BehindChildHandle<O, W> {
    #[inline]
    fn own_link(&self) -> Option<&ParentLink> {
        self.0.attachment.own_link()
    }

    fn name(&self) -> Option<Arc<str>> {
        self.0.attachment.name().cloned()
    }

    #[inline]
    fn ended<T>(&self, task: &Inside, outcome: &mut Outcome<T>) {
        name_panic(task, self.0.attachment.name(), outcome);
        if let Outcome::Panicked(panic) = outcome {
            watch_panic(BlockOf::<O>::new(task.parent_link()).get(), panic);
        }
    }

    #[inline(always)]
    fn deliver(&self, task: Leaving<'_>, unheard: Option<Panic>) -> Left {
        let child = LeavingChild::new(task);
        match unheard {
            // Also if the child was stopped: its handle hears of that, and the body's value does not rely on
            // it.
            None => self.0.attachment.finished(child),
            Some(panic) => self.0.attachment.ended(child, ChildEnd::Failed(Failure::Panic(panic))),
        }
    }
}

/// Adds the task's name or spawn site to a panic that is text. A panic with another payload stays as it is.
#[inline(always)]
pub(crate) fn name_panic<T>(task: &Inside, name: Option<&Arc<str>>, outcome: &mut Outcome<T>) {
    if let Outcome::Panicked(panic) = outcome {
        name_text(task, name, panic);
    }
}

#[cold]
#[inline(never)]
fn name_text(task: &Inside, name: Option<&Arc<str>>, panic: &mut Panic) {
    if panic.is_text() {
        let (location, message) = (task.location(), panic.message());
        *panic = Panic::new(match name {
            Some(name) => format!("the task `{name}` (started at {location}) panicked: {message}"),
            None => format!("the task started at {location} panicked: {message}"),
        });
    }
}

/// Lets a panic go to the scope if the handle is dropped later.
#[cold]
#[inline(never)]
fn watch_panic<O>(block: &Block<O>, panic: &mut Panic) {
    let named = core::mem::replace(panic, Panic::new(""));
    *panic = Unheard::watch(&block.unheard(), named);
}
