//! Notifications for a host: finished operations and wakers. Its driver delivers them, on the loop of the
//! host, as the drivers of real kernels do: so a task is woken by its own loop.

use convoke_io::driver::Finished;

use super::{HostId, WorldState};

/// Notifications in order. Most often there is one, which needs no allocation.
#[derive(Debug, Default)]
#[must_use = "dropping them notifies the waiters; drop them with no lock held"]
pub(crate) struct Notifications {
    first: Option<Finished>,
    rest: Vec<Finished>,
}

impl Notifications {
    pub(super) fn push(&mut self, finished: Finished) {
        match self.first {
            None => self.first = Some(finished),
            Some(_) => self.rest.push(finished),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn append(&mut self, later: Self) {
        later.first.into_iter().chain(later.rest).for_each(|finished| self.push(finished));
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }
}

impl WorldState {
    /// Notifies a waiter of a host: by its driver if the host is up and runs its program, else when the lock is
    /// released.
    pub(super) fn notify(&mut self, host: HostId, finished: Finished) {
        let its_host = self.host(host);
        if its_host.up && its_host.runs {
            its_host.notifications.push(finished);
            self.wakes = true;
            self.mark_ready(host);
        } else {
            its_host.in_flight -= 1;
            self.finished.push(finished);
        }
    }

    /// Takes the notifications of a host. The caller drops them without the lock.
    pub(crate) fn take_notifications(&mut self, host: HostId) -> Notifications {
        let host = self.host(host);
        let taken = core::mem::take(&mut host.notifications);
        host.in_flight -= taken.len();
        taken
    }

    /// Notes that the program of a host has ended: connections that it closed may still have waiters.
    pub(crate) fn end_program(&mut self, host: HostId) {
        self.release_notifications(host);
        self.host(host).runs = false;
    }

    /// Moves the notifications of a host that goes down to those that are delivered when the lock is
    /// released.
    pub(super) fn release_notifications(&mut self, host: HostId) {
        let taken = self.take_notifications(host);
        self.finished.append(taken);
    }
}
