//! Asking one task to stop by its address: for explorations, which have no handle to it.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::OwnerId;

use super::found::Found;
use super::look_at_all;
use crate::task::{Alive, TaskHeader, TaskRef};

/// A task to find, and a reference to it once it was found.
#[derive(Debug)]
pub(crate) struct Wanted {
    address: usize,
    owner: OwnerId,
    task: Option<TaskRef>,
}

/// Asks the task at this address to stop, if this is its owner thread's number and it has not ended. Returns
/// true if it was found.
///
/// # Safety
/// This thread is the only one that runs work of that owner, and none of it runs now: so none of its tasks
/// leaves meanwhile.
pub unsafe fn ask_stop(address: usize, owner: OwnerId) -> bool {
    let mut found = Found::default();
    found.wanted = Some(Wanted { address, owner, task: None });
    look_at_all(&mut found);
    let Some(task) = found.wanted.and_then(|wanted| wanted.task) else { return false };
    task.alive().ask_stop();
    true
}

impl Wanted {
    /// Adds a reference to the task if it is the wanted one.
    pub(super) fn visit(&mut self, task: &TaskHeader) {
        let is_wanted = task.is_alive_in(self.owner) && core::ptr::from_ref(task).addr() == self.address;
        if is_wanted && self.task.is_none() {
            // SAFETY: the task has not ended, and does not leave during the visit: the promise of `ask_stop`'s caller.
            self.task = Some(unsafe { Alive::new(NonNull::from(task)) }.counted());
        }
    }
}
