//! Asking one task of a tree to stop: for explorations, which have no handle to it.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::OwnerId;

use super::found::Found;
use super::look_at_all;
use crate::task::{TaskHeader, drop_reference};

/// A task that is looked for, and a reference to it once it was met.
#[derive(Debug)]
pub(crate) struct Wanted {
    address: usize,
    home: OwnerId,
    met: Option<NonNull<TaskHeader>>,
}

/// Asks the task at this address to stop, if it lives in this home and has not ended. Says whether it was there.
///
/// # Safety
/// This thread is the only one that runs what lives in that home, and nothing of it runs now: so none of its tasks leaves
/// meanwhile.
pub unsafe fn ask_stop(address: usize, home: OwnerId) -> bool {
    let mut found = Found::default();
    found.wanted = Some(Wanted { address, home, met: None });
    look_at_all(&mut found);
    let Some(task) = found.wanted.and_then(|wanted| wanted.met) else { return false };
    // SAFETY: `meet` has given us a reference.
    unsafe {
        TaskHeader::ask_stop(task);
        drop_reference(task);
    }
    true
}

impl Wanted {
    /// Is this the one?
    pub(super) fn meet(&mut self, task: &TaskHeader) {
        let task = NonNull::from(task);
        // SAFETY: a parent tells of it, and so it is there.
        let is_wanted = unsafe { task.as_ref() }.is_alive_in(self.home) && task.addr().get() == self.address;
        if is_wanted && self.met.is_none() {
            // SAFETY: it has not ended, and by the promise of `ask_stop`'s caller does not leave while we look.
            unsafe { TaskHeader::add_reference(task) };
            self.met = Some(task);
        }
    }
}
