//! The registry of models, which is empty: a model has no `static` that outlives it, and its tasks are not
//! inspected.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use super::found::{Found, Visit};

/// An entry that is never linked.
#[derive(Debug)]
pub(crate) struct Entry;

impl Entry {
    pub(crate) const fn new() -> Self {
        Self
    }

    /// # Safety
    /// None is needed: this does nothing, as its twin in `entry.rs` must not.
    pub(crate) unsafe fn link<T: Visit>(&self, _: NonNull<T>) {}

    /// # Safety
    /// None is needed: this does nothing, as its twin in `entry.rs` must not.
    pub(crate) unsafe fn unlink(&self) {}
}

/// Finds nothing.
pub fn visit_all(_: &mut Found) {}
