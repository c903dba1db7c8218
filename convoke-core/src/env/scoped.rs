//! An environment inside an operation: it borrows from the one above what it does not change, without counting
//! references.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::{self, NonNull};

use super::{Changes, Env, EnvStop};
use crate::stop::InPlaceStop;

/// A changed environment that is no longer-lived than the one it was made of. Only what was changed is its own.
pub struct ScopedEnv {
    /// The parent's, except for the parts that are our own. The executor is lent by its address, as it may change what is
    /// in it; the others are handles that do not change, copied bit for bit.
    env: ManuallyDrop<Env>,
    own_executor: bool,
    own_stop: bool,
    own_allocator: bool,
    own_locals: bool,
}

impl ScopedEnv {
    /// `parent` with some changes.
    ///
    /// # Safety
    /// `parent` outlives it, and neither moves nor is changed meanwhile.
    pub unsafe fn new(parent: &Env, changes: Changes) -> Self {
        // SAFETY: the copy is never dropped as a whole, and the parent outlives it: whoever reads it through us
        // sees live handles.
        let mut this = unsafe { Self::lend(parent) };
        let env: *mut Env = &mut *this.env;
        // Written and not assigned: what stood there is the parent's and must not be dropped.
        // SAFETY: `env` points to our own copy.
        unsafe {
            if let Some(executor) = changes.executor {
                ptr::write(&raw mut (*env).executor, executor);
                this.own_executor = true;
            }
            if let Some(stop) = changes.stop {
                ptr::write(&raw mut (*env).stop, EnvStop::Owned(stop));
                this.own_stop = true;
            }
            if let Some(allocator) = changes.allocator {
                ptr::write(&raw mut (*env).allocator, allocator);
                this.own_allocator = true;
            }
            if !changes.locals.is_empty() {
                ptr::write(&raw mut (*env).locals, parent.locals.clone());
                this.own_locals = true;
                for entry in changes.locals {
                    (*env).locals.push(entry);
                }
            }
        }
        this
    }

    /// `parent` with another stop source, which lives in an operation.
    ///
    /// # Safety
    /// `parent` and `stop` outlive it, and stay where they are.
    pub unsafe fn with_in_place_stop(parent: &Env, stop: NonNull<InPlaceStop>) -> Self {
        // SAFETY: as in `new`.
        unsafe {
            let mut this = Self::lend(parent);
            ptr::write(&raw mut this.env.stop, EnvStop::InPlace(stop));
            this
        }
    }

    /// # Safety
    /// `parent` outlives it and does not move.
    unsafe fn lend(parent: &Env) -> Self {
        // SAFETY: the originals stay where they are and outlive the copies, which are never dropped: a token, an
        // allocator's handle and a list of locals are pointers that nobody changes through `&`.
        let env = unsafe {
            Env {
                executor: ManuallyDrop::into_inner(parent.executor.lend()),
                stop: ptr::read(&raw const parent.stop),
                allocator: ptr::read(&raw const parent.allocator),
                locals: ptr::read(&raw const parent.locals),
            }
        };
        let env = ManuallyDrop::new(env);
        Self { env, own_executor: false, own_stop: false, own_allocator: false, own_locals: false }
    }
}

impl Deref for ScopedEnv {
    type Target = Env;

    #[inline]
    fn deref(&self) -> &Env {
        &self.env
    }
}

impl Drop for ScopedEnv {
    #[inline]
    fn drop(&mut self) {
        let env: *mut Env = &mut *self.env;
        // SAFETY: each part is dropped only if it is our own, and once.
        unsafe {
            if self.own_executor {
                ptr::drop_in_place(&raw mut (*env).executor);
            }
            if self.own_stop {
                ptr::drop_in_place(&raw mut (*env).stop);
            }
            if self.own_allocator {
                ptr::drop_in_place(&raw mut (*env).allocator);
            }
            if self.own_locals {
                ptr::drop_in_place(&raw mut (*env).locals);
            }
        }
    }
}

impl fmt::Debug for ScopedEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
