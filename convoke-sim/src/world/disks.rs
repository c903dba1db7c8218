//! The disks of hosts, as the world sees them: who may write, how long a sync takes, and what a crash leaves.

use core::fmt;
use core::time::Duration;
use std::any::Any;
use std::io;
use std::sync::Arc;

use super::{HostId, State};
use convoke_core::raw::Random;

/// How long a sync takes.
const SYNC: core::ops::Range<Duration> = Duration::from_millis(1)..Duration::from_millis(5);

/// A disk of which the world does not know the type.
pub(crate) trait Platter: Send + Sync {
    /// Its host crashes: of what was not synced a beginning stays, as chance has it.
    fn crash(&self, random: &mut Random) -> Crashed;
}

/// What a crash has done to a disk.
pub(crate) struct Crashed {
    /// How many writes are lost.
    pub(crate) lost: usize,
    /// How many writes were not synced.
    pub(crate) written: usize,
    /// The values that are on the disk no more. Dropped without the lock: their destructors are the program's.
    pub(crate) remains: Box<dyn Any + Send>,
}

/// Those of one host.
#[derive(Default)]
pub(crate) struct Disks(Vec<Arc<dyn Platter>>);

impl fmt::Debug for Disks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Disks").field(&self.0.len()).finish()
    }
}

impl State {
    pub(crate) fn add_disk(&mut self, host: HostId, disk: Arc<dyn Platter>) {
        self.host(host).disks.0.push(disk);
    }

    /// Whether what the host writes now gets to its disks.
    pub(crate) fn writes(&mut self, host: HostId) -> bool {
        !self.is_over && self.host(host).up
    }

    /// The host begins to sync: how long that takes, or what goes wrong. Nothing, if it has crashed or does so here.
    pub(crate) fn begin_sync(&mut self, host: HostId) -> Option<io::Result<Duration>> {
        if !self.writes(host) {
            return None;
        }
        let begun = self.begin(host, None, "sync");
        self.writes(host).then(|| begun.map(|()| self.random.between(&SYNC)))
    }

    /// The run has ended: what is still destroyed changes nothing. A value on a disk may hold a socket, which knows us: so the
    /// disks are let go.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        for host in &mut self.hosts {
            self.remains.push(Box::new(core::mem::take(&mut host.disks)));
        }
    }

    pub(super) fn crash_disks(&mut self, host: HostId) {
        let disks = core::mem::take(&mut self.host(host).disks);
        for disk in &disks.0 {
            let Crashed { lost, written, remains } = disk.crash(&mut self.random);
            self.remains.push(remains);
            if written > 0 {
                self.note_event(format!(
                    "{} loses {lost} of {written} writes that were not synced",
                    self.name(host)
                ));
            }
        }
        self.host(host).disks = disks;
    }
}
