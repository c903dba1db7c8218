//! An environment inside an operation: it borrows what it does not change from the environment above, without
//! counting references.
//!
//! 1. A part of `env` belongs to us if its `own_` flag is set. Otherwise it is a bitwise copy of the
//!    parent's, and is neither changed nor dropped.
//! 2. The parent outlives us, does not move, and does not change meanwhile. So the copies stay valid.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::{self, ManuallyDrop};
use core::ops::Deref;
use core::ptr::{self, NonNull};

use super::local::Locals;
use super::{Changes, Env, EnvStop, Overlay, Parts};
use crate::stop::InPlaceStop;

/// A changed environment that does not outlive the one it was made from. It owns only the parts that were
/// changed.
pub struct ScopedEnv {
    /// The executor is lent by its address, because it may have interior mutability. The other parts are
    /// handles that do not change through `&`, and are copied bit for bit.
    env: ManuallyDrop<Env>,
    own_executor: bool,
    own_stop: bool,
    own_allocator: bool,
    own_locals: bool,
}

impl ScopedEnv {
    /// Creates `parent` with some changes.
    ///
    /// # Safety
    /// `parent` outlives the result, and neither moves nor changes meanwhile.
    pub unsafe fn new(parent: &Env, changes: Changes) -> Self {
        let mut changes = changes.parts;
        // SAFETY: rule 2, which this function requires: operations call it with the environment of their
        // receiver, which outlives them.
        let mut this = unsafe { Self::lend(parent) };
        if let Some(executor) = changes.executor.take() {
            replace_lent(&mut this.env.parts.executor, executor);
            this.own_executor = true;
        }
        if let Some(stop) = changes.stop.take() {
            replace_lent(&mut this.env.parts.stop, EnvStop::Owned(stop));
            this.own_stop = true;
        }
        if let Some(allocator) = changes.allocator.take() {
            replace_lent(&mut this.env.parts.allocator, allocator);
            this.own_allocator = true;
        }
        if !changes.locals.is_empty() {
            replace_lent(&mut this.env.parts.locals, parent.parts.locals.clone());
            this.own_locals = true;
            let values = mem::replace(&mut changes.locals, Locals::EMPTY);
            this.env.parts.locals.put_on_top(values);
        }
        this
    }

    /// Creates `parent` with the stop source of an operation.
    ///
    /// # Safety
    /// `parent` and `stop` outlive the result, and do not move.
    pub unsafe fn with_in_place_stop(parent: &Env, stop: NonNull<InPlaceStop>) -> Self {
        // SAFETY: rule 2, which this function requires: `parent` and `stop` belong to the task and the operation
        // around the one that this environment lies in.
        let mut this = unsafe { Self::lend(parent) };
        replace_lent(&mut this.env.parts.stop, EnvStop::InPlace(stop));
        this
    }

    /// Replaces the allocator and the locals by copies of those of an overlay, which need not outlive the result.
    #[must_use]
    pub fn overlaid(mut self, overlay: &Overlay) -> Self {
        let parts = &mut self.env.parts;
        let allocator = mem::replace(&mut parts.allocator, overlay.allocator.clone());
        let locals = mem::replace(&mut parts.locals, overlay.locals.clone());
        if !mem::replace(&mut self.own_allocator, true) {
            mem::forget(allocator);
        }
        if !mem::replace(&mut self.own_locals, true) {
            mem::forget(locals);
        }
        self
    }

    /// Creates a copy of `parent` that owns nothing.
    ///
    /// # Safety
    /// Rule 2.
    unsafe fn lend(parent: &Env) -> Self {
        // SAFETY: rule 2: the originals outlive the copies, and rule 1: the copies are never dropped. A
        // token, the handle of an allocator and a list of locals do not change through `&`, so that a bitwise
        // copy stays valid.
        let env = unsafe {
            let parent = &*parent.parts;
            Env::of(Parts {
                executor: ManuallyDrop::into_inner(parent.executor.lend()),
                stop: ptr::read(&raw const parent.stop),
                allocator: ptr::read(&raw const parent.allocator),
                locals: ptr::read(&raw const parent.locals),
            })
        };
        let env = ManuallyDrop::new(env);
        Self { env, own_executor: false, own_stop: false, own_allocator: false, own_locals: false }
    }
}

/// Replaces a part that is lent, without dropping it: rule 1: it belongs to the parent.
fn replace_lent<T>(part: &mut T, own: T) {
    mem::forget(mem::replace(part, own));
}

impl Deref for ScopedEnv {
    type Target = Env;

    #[inline]
    fn deref(&self) -> &Env {
        &self.env
    }
}

impl Drop for ScopedEnv {
    fn drop(&mut self) {
        let parts: *mut Parts = &mut *self.env.parts;
        // SAFETY: rule 1: each part is dropped only if it is ours, and the destructor runs once.
        unsafe {
            if self.own_executor {
                ptr::drop_in_place(&raw mut (*parts).executor);
            }
            if self.own_stop {
                ptr::drop_in_place(&raw mut (*parts).stop);
            }
            if self.own_allocator {
                ptr::drop_in_place(&raw mut (*parts).allocator);
            }
            if self.own_locals {
                ptr::drop_in_place(&raw mut (*parts).locals);
            }
        }
    }
}

impl fmt::Debug for ScopedEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
