//! The disks of hosts, as the world sees them: whether writes take effect, how long a sync takes, and what a
//! crash leaves.

use core::fmt;
use core::time::Duration;
use std::any::Any;
use std::io;
use std::sync::Arc;

use super::{HostId, WorldState};
use convoke_core::raw::Random;

/// The range of the duration of a sync.
const SYNC: core::ops::Range<Duration> = Duration::from_millis(1)..Duration::from_millis(5);

/// A disk whose value type is erased.
pub(crate) trait AnyDisk: Send + Sync {
    /// Applies a crash of its host: the seed decides how many of the unsynced writes survive.
    fn crash(&self, random: &mut Random) -> DiskCrash;
}

/// The effect of a crash on a disk.
pub(crate) struct DiskCrash {
    /// Number of lost writes.
    pub(crate) lost: usize,
    /// Number of writes that were not synced.
    pub(crate) written: usize,
    /// Values that are no longer on the disk. They are dropped without the lock: their destructors are code
    /// of the program.
    pub(crate) discarded: Box<dyn Any + Send>,
}

/// The disks of one host.
#[derive(Default)]
pub(crate) struct Disks(Vec<Arc<dyn AnyDisk>>);

impl fmt::Debug for Disks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Disks").field(&self.0.len()).finish()
    }
}

impl WorldState {
    pub(crate) fn add_disk(&mut self, host: HostId, disk: Arc<dyn AnyDisk>) {
        self.host(host).disks.0.push(disk);
    }

    /// Returns true if writes of the host take effect.
    pub(crate) fn writes(&mut self, host: HostId) -> bool {
        !self.is_over && self.host(host).up
    }

    /// Begins a sync. Returns its duration, or the error of a fault; `None` if the host has crashed or
    /// crashes here.
    pub(crate) fn begin_sync(&mut self, host: HostId) -> Option<io::Result<Duration>> {
        if !self.writes(host) {
            return None;
        }
        let begun = self.begin(host, None, "sync");
        self.writes(host).then(|| begun.map(|()| self.random.between(&SYNC)))
    }

    /// Ends the run: destructors that run later change nothing. A value on a disk may hold a socket, which refers to this state: so the
    /// disks are dropped, too.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        for host in &mut self.hosts {
            self.discarded.push(Box::new(core::mem::take(&mut host.disks)));
        }
    }

    pub(super) fn crash_disks(&mut self, host: HostId) {
        let disks = core::mem::take(&mut self.host(host).disks);
        for disk in &disks.0 {
            let DiskCrash { lost, written, discarded } = disk.crash(&mut self.random);
            self.discarded.push(discarded);
            if written > 0 {
                self.note_break(format!(
                    "{} loses {lost} of {written} writes that were not synced",
                    self.name(host)
                ));
            }
        }
        self.host(host).disks = disks;
    }
}
