//! Asking one task to stop by its address: for explorations, which have no handle to it.

#![allow(unsafe_code)]

use convoke_core::StopReason;
use convoke_core::raw::OwnerId;

use super::found::Found;
use super::visit_all;
use crate::task::{InList, StopWalk, TaskRef};

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
    visit_all(&mut found);
    let Some(task) = found.wanted.and_then(|wanted| wanted.task) else { return false };
    let mut walk = StopWalk::new(StopReason::Requested);
    task.alive().ask_stop(&mut walk);
    walk.run();
    true
}

impl Wanted {
    /// Adds a reference to the task if it is the wanted one.
    pub(super) fn visit(&mut self, task: InList<'_>) {
        let is_wanted = task.is_alive_in(self.owner) && task.id().address() == self.address;
        if is_wanted && self.task.is_none() {
            // SAFETY: it is a task of the owner that `ask_stop` names, of which none leaves during the visit:
            // its contract, and only `ask_stop` makes a `Wanted`.
            self.task = Some(unsafe { task.counted() });
        }
    }
}
