//! How a child of a scope ends: its outcome goes to the scope, or to a handle.

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

/// Where a child hangs: in the scope's own place, or in one of its own, on another executor.
///
/// # Safety
/// `block` is the block of the scope that the child was added to.
pub(super) unsafe trait Where<O>: Sized {
    /// The scope.
    ///
    /// # Safety
    /// The child has not been told to have ended.
    unsafe fn block(&self, child: NonNull<TaskHeader>) -> NonNull<Block<O>>;

    /// The scope is told that the child has come home.
    ///
    /// # Safety
    /// As for [`Block::child_came_home`].
    #[inline]
    unsafe fn tell_home(&self, child: NonNull<TaskHeader>) -> Known {
        // SAFETY: the caller's.
        unsafe { Block::child_came_home(self.block(child), child) }
    }

    /// The scope is told that the child has ended, and how.
    ///
    /// # Safety
    /// As for [`Block::child_ended`].
    unsafe fn tell(&self, child: NonNull<TaskHeader>, end: ChildEnd<O>) -> Known {
        // SAFETY: the caller's.
        unsafe { Block::child_ended(self.block(child), child, end) }
    }

    /// The child is in memory: it takes its place, which is the scope's unless it has one of its own.
    ///
    /// # Safety
    /// Called once, before anybody else knows the child; `this` lies in it.
    #[inline]
    unsafe fn settle(
        this: NonNull<Self>,
        child: NonNull<TaskHeader>,
        scope: NonNull<ParentLink>,
    ) -> NonNull<ParentLink> {
        let _ = (this, child);
        scope
    }

    /// The scope knows the child, which does not run yet: its name becomes known.
    ///
    /// # Safety
    /// Called once, after `settle` and before the child is posted, by somebody who holds no lock; `this` lies in it.
    unsafe fn announce(this: NonNull<Self>, child: NonNull<TaskHeader>) {
        let _ = (this, child);
    }

    /// Its name, if it has one.
    fn name(&self) -> Option<&str> {
        None
    }
}

/// An ending of a child, which knows where it hangs.
pub(super) trait Placed<O> {
    type Where: Where<O>;

    /// That part of it.
    ///
    /// # Safety
    /// `this` is an ending in memory.
    unsafe fn place(this: NonNull<Self>) -> NonNull<Self::Where>;
}

impl<O, W: Where<O>> Placed<O> for ToScope<O, W> {
    type Where = W;

    #[inline]
    unsafe fn place(this: NonNull<Self>) -> NonNull<W> {
        // SAFETY: the caller's; a field has an address.
        unsafe { NonNull::new_unchecked(&raw mut (*this.as_ptr()).place) }
    }
}

impl<O, W: Where<O>, K: Kind> Placed<O> for ToHandle<O, W, K> {
    type Where = W;

    #[inline]
    unsafe fn place(this: NonNull<Self>) -> NonNull<W> {
        // SAFETY: the caller's; a field has an address.
        unsafe { NonNull::new_unchecked(&raw mut (*this.as_ptr()).place) }
    }
}

/// In the scope's own place.
pub(super) struct Here;

// SAFETY: the place of such a child is the first field of its scope's block (`repr(C)`).
unsafe impl<O> Where<O> for Here {
    #[inline]
    unsafe fn block(&self, child: NonNull<TaskHeader>) -> NonNull<Block<O>> {
        // SAFETY: the caller's.
        NonNull::from(unsafe { child.as_ref().parent_link() }).cast()
    }
}

/// On another executor: with a place of its own, inside the task.
#[repr(C)]
pub(super) struct Elsewhere<O> {
    /// First, so that its address is ours. Made when the child is in memory.
    place: MaybeUninit<ParentLink>,
    env: Env,
    block: NonNull<Block<O>>,
}

impl<O> Elsewhere<O> {
    pub(super) fn new(env: Env, block: &Block<O>) -> Self {
        Self { place: MaybeUninit::uninit(), env, block: NonNull::from(block) }
    }

    /// # Safety
    /// The place is that of an `Elsewhere<O>`, and its task has not left.
    unsafe fn reason(place: NonNull<ParentLink>) -> Option<StopReason> {
        // SAFETY: the place is the first field (`repr(C)`); the block outlives the task's stay.
        unsafe { place.cast::<Self>().as_ref().block.as_ref() }.place.stop_reason()
    }
}

// SAFETY: by construction.
unsafe impl<O> Where<O> for Elsewhere<O> {
    unsafe fn block(&self, _: NonNull<TaskHeader>) -> NonNull<Block<O>> {
        self.block
    }

    unsafe fn settle(
        this: NonNull<Self>,
        child: NonNull<TaskHeader>,
        _: NonNull<ParentLink>,
    ) -> NonNull<ParentLink> {
        // SAFETY: the caller's: nobody else is here; we lie in the child, and so stay for as long as it does. The place has
        // nothing to drop.
        unsafe {
            let scope = &this.as_ref().block.as_ref().place;
            let env = NonNull::new_unchecked(&raw mut (*this.as_ptr()).env);
            let place = ParentLink::new(
                env,
                ParentLink::home_of(env.as_ref()),
                scope.deadline(),
                scope.parent,
                Self::reason,
            );
            this.cast::<ParentLink>().write(place);
            TaskHeader::set_place(child, this.cast());
        }
        this.cast()
    }
}

/// A child whose failure is the scope's.
pub(super) struct ToScope<O, W> {
    pub(super) place: W,
    pub(super) _scope: PhantomData<fn(O)>,
}

// SAFETY: the task is not freed here.
unsafe impl<O, T: ChildOutput<O>, W: Where<O>> Ending<T> for ToScope<O, W> {
    #[inline]
    unsafe fn ended(&self, task: NonNull<TaskHeader>, room: NonNull<Outcome<T>>) {
        // SAFETY: the caller's.
        unsafe { name_panic(task, self.place.name(), room) };
    }

    #[inline]
    unsafe fn deliver(&self, task: NonNull<TaskHeader>, room: NonNull<Outcome<T>>) -> Known {
        // SAFETY: the outcome is there, and taken once; the child has not been told to have ended.
        unsafe {
            let end = match room.read() {
                Outcome::Value(value) => match Panic::catch(|| value.failure()) {
                    Ok(None) => return self.place.tell_home(task),
                    Ok(Some(output)) => ChildEnd::Failed(Failure::Output(output)),
                    Err(panic) => ChildEnd::Failed(Failure::Panic(panic)),
                },
                Outcome::Panicked(panic) => ChildEnd::Failed(Failure::Panic(panic)),
                Outcome::Error(never) => never.absurd(),
                Outcome::Stopped => ChildEnd::Stopped,
            };
            self.place.tell(task, end)
        }
    }
}

/// A child with a handle.
#[repr(C)]
pub(super) struct ToHandle<O, W, K: Kind = Anywhere> {
    /// First: the handle looks for it there.
    pub(super) point: HandleRendezvous<K>,
    pub(super) place: W,
    pub(super) _scope: PhantomData<fn(O, K)>,
}

// SAFETY: the task is not freed here: the handle has a reference of its own.
unsafe impl<O, T, W: Where<O>, K: Kind> Ending<T> for ToHandle<O, W, K> {
    const REFERENCES: u32 = if K::AT_HOME { 0 } else { 1 };
    const HANDLE: bool = K::AT_HOME;

    #[inline]
    unsafe fn ended(&self, task: NonNull<TaskHeader>, room: NonNull<Outcome<T>>) {
        // SAFETY: the caller's.
        unsafe { name_panic(task, self.place.name(), room) };
    }

    #[inline(always)]
    unsafe fn deliver(&self, task: NonNull<TaskHeader>, room: NonNull<Outcome<T>>) -> Known {
        // SAFETY: the outcome is there, and is the handle's from the meeting on, unless that says otherwise. The waker is
        // ours as the meeting says.
        unsafe {
            let HandleRendezvous { meeting, waker, .. } = &self.point;
            let complete = if K::AT_HOME { meeting.complete_here() } else { meeting.complete() };
            match complete {
                Complete::Leave => {}
                Complete::Wake => {
                    let waker = (*waker.get()).take();
                    meeting.left();
                    // Contained: the scope is told below, whatever the waker does.
                    wake_if_any(waker);
                }
                Complete::Free => match Panic::catch(|| match room.read() {
                    Outcome::Panicked(panic) => Some(panic),
                    _ => None,
                }) {
                    Ok(None) => {}
                    Ok(Some(panic)) | Err(panic) => {
                        return self.place.tell(task, ChildEnd::Failed(Failure::Panic(panic)));
                    }
                },
            }
            // Also if it was stopped: whoever has the handle is told of that, and the scope's body has done without.
            self.place.tell_home(task)
        }
    }
}

/// A panic in the room says whose it was from now on. One that is not text stays what it was.
///
/// # Safety
/// Called from inside the task, with its outcome.
#[inline]
pub(crate) unsafe fn name_panic<T>(
    task: NonNull<TaskHeader>,
    name: Option<&str>,
    mut room: NonNull<Outcome<T>>,
) {
    // SAFETY: the caller's.
    if let Outcome::Panicked(panic) = unsafe { room.as_mut() }
        && panic.is_text()
    {
        // SAFETY: the caller's.
        let location = unsafe { task.as_ref().location() };
        let message = panic.message();
        *panic = Panic::new(match name {
            Some(name) => format!("the task `{name}` (started at {location}) panicked: {message}"),
            None => format!("the task started at {location} panicked: {message}"),
        });
    }
}
