//! The end of a child: its outcome goes to the scope (`ToScope`), or to a handle (`ToHandle`). And its parent
//! link: the one in the scope's block (`SharedLink`), or one of its own (`OwnLink`).

#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use convoke_core::raw::Complete;
use convoke_core::{Env, Outcome, Panic, StopReason};

use super::block::{Block, ChildEnd, Failure};
use super::handle::{Anywhere, Kind};
use super::handle_rendezvous::HandleRendezvous;
use super::output::ChildOutput;
use crate::task::{Ending, Known, ParentLink, TaskHeader};
use convoke_core::raw::wake_if_any;

/// The connection of a child to its scope: through the parent link in the block, or through one inside the
/// child.
///
/// # Safety
/// `block` returns the block that the child was added to.
pub(super) unsafe trait Attach<O>: Sized {
    /// Returns the block of the scope.
    ///
    /// # Safety
    /// The child is in the block's list: neither `finished` nor `ended` was called.
    unsafe fn block(&self, child: NonNull<TaskHeader>) -> NonNull<Block<O>>;

    /// Removes a child that has done its part from the block.
    ///
    /// # Safety
    /// The conditions of [`Block::child_finished`].
    #[inline]
    unsafe fn finished(&self, child: NonNull<TaskHeader>) -> Known {
        // SAFETY: the caller guarantees the conditions of `child_finished`; by those the child is still in
        // the list.
        unsafe { Block::child_finished(self.block(child), child) }
    }

    /// Removes a child that failed or was stopped from the block.
    ///
    /// # Safety
    /// The conditions of [`Block::child_ended`].
    unsafe fn ended(&self, child: NonNull<TaskHeader>, end: ChildEnd<O>) -> Known {
        // SAFETY: the caller guarantees the conditions of `child_ended`; by those the child is still in the
        // list.
        unsafe { Block::child_ended(self.block(child), child, end) }
    }

    /// Sets the parent link of a child that was just written to its memory, and returns it. By default it is
    /// the scope's.
    ///
    /// # Safety
    /// Called once, before another thread can reach the child. `this` is part of the child.
    #[inline]
    unsafe fn attach(
        this: NonNull<Self>,
        child: NonNull<TaskHeader>,
        scope: NonNull<ParentLink>,
    ) -> NonNull<ParentLink> {
        let _ = (this, child);
        scope
    }

    /// Publishes the name of a child that is in the list and does not run yet.
    ///
    /// # Safety
    /// Called once, after `attach` and before the child is posted, on a thread that holds no lock. `this` is
    /// part of the child.
    unsafe fn announce(this: NonNull<Self>, child: NonNull<TaskHeader>) {
        let _ = (this, child);
    }

    /// Returns the name of the child, if it has one.
    fn name(&self) -> Option<&str> {
        None
    }
}

/// An ending of a child that contains its connection to the scope.
pub(super) trait Attached<O> {
    type Attach: Attach<O>;

    /// Returns the address of the connection.
    ///
    /// # Safety
    /// `this` points to a live ending.
    unsafe fn attachment(this: NonNull<Self>) -> NonNull<Self::Attach>;
}

impl<O, W: Attach<O>> Attached<O> for ToScope<O, W> {
    type Attach = W;

    #[inline]
    unsafe fn attachment(this: NonNull<Self>) -> NonNull<W> {
        // SAFETY: the caller says that `this` is alive; the address of its field is not null.
        unsafe { NonNull::new_unchecked(&raw mut (*this.as_ptr()).attachment) }
    }
}

impl<O, W: Attach<O>, K: Kind> Attached<O> for ToHandle<O, W, K> {
    type Attach = W;

    #[inline]
    unsafe fn attachment(this: NonNull<Self>) -> NonNull<W> {
        // SAFETY: the caller says that `this` is alive; the address of its field is not null.
        unsafe { NonNull::new_unchecked(&raw mut (*this.as_ptr()).attachment) }
    }
}

/// The connection of a child through the parent link in the scope's block.
pub(super) struct SharedLink;

// SAFETY: the parent link of such a child is the first field of its scope's block (`repr(C)`).
unsafe impl<O> Attach<O> for SharedLink {
    #[inline]
    unsafe fn block(&self, child: NonNull<TaskHeader>) -> NonNull<Block<O>> {
        // SAFETY: the caller says that the child is in the list, so its memory and its parent link are alive.
        NonNull::from(unsafe { child.as_ref().parent_link() }).cast()
    }
}

/// The connection of a child on another executor: a parent link inside the task.
#[repr(C)]
pub(super) struct OwnLink<O> {
    /// The first field, so that a pointer to it is a pointer to the whole. `attach` writes it.
    link: MaybeUninit<ParentLink>,
    env: Env,
    block: NonNull<Block<O>>,
}

impl<O> OwnLink<O> {
    pub(super) fn new(env: Env, block: &Block<O>) -> Self {
        Self { link: MaybeUninit::uninit(), env, block: NonNull::from(block) }
    }

    /// Returns the reason of the scope's stop request, if there is one.
    ///
    /// # Safety
    /// `link` is the link of an `OwnLink<O>` whose child is in the list of its block.
    unsafe fn reason(link: NonNull<ParentLink>) -> Option<StopReason> {
        // SAFETY: the link is the first field (`repr(C)`); the block is alive while the child is in its list
        // (its rule 1).
        unsafe { link.cast::<Self>().as_ref().block.as_ref() }.link.stop_reason()
    }
}

// SAFETY: `Scope::own_link` stores the block of the scope that starts the child.
unsafe impl<O> Attach<O> for OwnLink<O> {
    unsafe fn block(&self, _: NonNull<TaskHeader>) -> NonNull<Block<O>> {
        self.block
    }

    unsafe fn attach(
        this: NonNull<Self>,
        child: NonNull<TaskHeader>,
        _: NonNull<ParentLink>,
    ) -> NonNull<ParentLink> {
        // SAFETY: no other thread can reach the child yet, so its fields may be written. `this` is part of
        // the child, so environment and link live as long as it. The link is not dropped: it is in a
        // `MaybeUninit`, and the part of it that owns memory is not used by a link with one task.
        unsafe {
            let scope = &this.as_ref().block.as_ref().link;
            let env = NonNull::new_unchecked(&raw mut (*this.as_ptr()).env);
            let link = ParentLink::new(
                env,
                ParentLink::home_of(env.as_ref()),
                scope.deadline(),
                scope.parent,
                Self::reason,
            );
            this.cast::<ParentLink>().write(link);
            TaskHeader::set_place(child, this.cast());
        }
        this.cast()
    }
}

/// The ending of a child whose failure is the scope's.
pub(super) struct ToScope<O, W> {
    pub(super) attachment: W,
    pub(super) _scope: PhantomData<fn(O)>,
}

// SAFETY: `deliver` gives no reference to the task away, so it is not freed there.
unsafe impl<O, T: ChildOutput<O>, W: Attach<O>> Ending<T> for ToScope<O, W> {
    #[inline]
    unsafe fn ended(&self, task: NonNull<TaskHeader>, outcome: NonNull<Outcome<T>>) {
        // SAFETY: the caller calls this from inside the task, with its outcome.
        unsafe { name_panic(task, self.attachment.name(), outcome) };
    }

    #[inline]
    unsafe fn deliver(&self, task: NonNull<TaskHeader>, outcome: NonNull<Outcome<T>>) -> Known {
        // SAFETY: the caller calls `deliver` once, with an outcome: it is read once. The child is in the list
        // until one of the two calls below, of which one is made.
        unsafe {
            let end = match outcome.read() {
                Outcome::Value(value) => match Panic::catch(|| value.failure()) {
                    Ok(None) => return self.attachment.finished(task),
                    Ok(Some(output)) => ChildEnd::Failed(Failure::Output(output)),
                    Err(panic) => ChildEnd::Failed(Failure::Panic(panic)),
                },
                Outcome::Panicked(panic) => ChildEnd::Failed(Failure::Panic(panic)),
                Outcome::Error(never) => never.absurd(),
                Outcome::Stopped => ChildEnd::Stopped,
            };
            self.attachment.ended(task, end)
        }
    }
}

/// The ending of a child with a handle.
#[repr(C)]
pub(super) struct ToHandle<O, W, K: Kind = Anywhere> {
    /// The first field: the handle finds it at a fixed distance from the header.
    pub(super) shared: HandleRendezvous<K>,
    pub(super) attachment: W,
    pub(super) _scope: PhantomData<fn(O, K)>,
}

// SAFETY: `deliver` does not free the task: it releases no reference, and the handle has one of its own.
unsafe impl<O, T, W: Attach<O>, K: Kind> Ending<T> for ToHandle<O, W, K> {
    const REFERENCES: u32 = if K::LOCAL { 0 } else { 1 };
    const HANDLE: bool = K::LOCAL;

    #[inline]
    unsafe fn ended(&self, task: NonNull<TaskHeader>, outcome: NonNull<Outcome<T>>) {
        // SAFETY: the caller calls this from inside the task, with its outcome.
        unsafe { name_panic(task, self.attachment.name(), outcome) };
    }

    #[inline(always)]
    unsafe fn deliver(&self, task: NonNull<TaskHeader>, outcome: NonNull<Outcome<T>>) -> Known {
        // SAFETY: after `complete` the outcome belongs to the handle, except for `Free`: the handle is gone,
        // and it is read here, once. The waker belongs to this thread between `Wake` and `left`.
        unsafe {
            let HandleRendezvous { rendezvous, waker, .. } = &self.shared;
            let complete = if K::LOCAL { rendezvous.complete_here() } else { rendezvous.complete() };
            match complete {
                Complete::Leave => {}
                Complete::Wake => {
                    let waker = (*waker.get()).take();
                    rendezvous.left();
                    // A panic of the waker is contained: the scope must hear of the end in any case.
                    wake_if_any(waker);
                }
                Complete::Free => match Panic::catch(|| match outcome.read() {
                    Outcome::Panicked(panic) => Some(panic),
                    _ => None,
                }) {
                    Ok(None) => {}
                    Ok(Some(panic)) | Err(panic) => {
                        return self.attachment.ended(task, ChildEnd::Failed(Failure::Panic(panic)));
                    }
                },
            }
            // Also if the child was stopped: its handle hears of that, and the body's value does not rely on
            // it.
            self.attachment.finished(task)
        }
    }
}

/// Adds the task's name or spawn site to a panic that is text. A panic with another payload stays as it is.
///
/// # Safety
/// Called from inside the task, with its outcome.
#[inline]
pub(crate) unsafe fn name_panic<T>(
    task: NonNull<TaskHeader>,
    name: Option<&str>,
    mut outcome: NonNull<Outcome<T>>,
) {
    // SAFETY: the caller passes the outcome of a task that it runs, so no other thread touches it.
    if let Outcome::Panicked(panic) = unsafe { outcome.as_mut() }
        && panic.is_text()
    {
        // SAFETY: the caller is inside the task, so its header is alive.
        let location = unsafe { task.as_ref().location() };
        let message = panic.message();
        *panic = Panic::new(match name {
            Some(name) => format!("the task `{name}` (started at {location}) panicked: {message}"),
            None => format!("the task started at {location} panicked: {message}"),
        });
    }
}
