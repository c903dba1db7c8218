//! `Disk`: the part of a host's state that survives a crash. It is the smallest faithful disk: a value,
//! writes to it, and a sync, without which no write is durable. The world keeps a list of the disks of each
//! host and tells them when that host crashes.

use core::fmt;
use std::io;
use std::sync::{Arc, TryLockError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_exec::time::sleep;
use convoke_task::forever;

use crate::world::{AnyDisk, DiskCrash, HostId, World};
use convoke_core::raw::Random;

/// A value that survives the crashes of its host, created by [`Sim::disk`](crate::Sim::disk). Clones share
/// the disk.
///
/// A [write](Disk::write) is visible to every later [read](Disk::read), but it is durable only after a
/// [sync](Disk::sync). A crash keeps a prefix of the writes since the last sync: none, some or all of them,
/// in order; the seed decides. Writes of a crashed host, or after the end of the run, have no effect: a
/// destructor cannot save what was not synced.
///
/// Each write stores a copy of the value until the next sync, so the value should be small or cheap to clone.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::sim::{Disk, Sim};
///
/// async fn counts(disk: Disk<u32>) -> std::io::Result<()> {
///     loop {
///         disk.write(|count| *count += 1);
///         disk.sync().await?;
///         sleep(Duration::from_secs(1)).await;
///     }
/// }
///
/// let mut sim = Sim::new(1);
/// let disk = sim.disk("counter", 0);
/// sim.host("counter").run_with(disk.clone(), counts);
/// sim.at(Duration::from_millis(2500), |sim| sim.restart("counter"));
/// sim.at(Duration::from_millis(4000), |sim| sim.crash("counter"));
/// sim.run();
/// disk.read(|count| assert_eq!(*count, 5));
/// ```
pub struct Disk<T> {
    world: Arc<World>,
    host: HostId,
    storage: Arc<Storage<T>>,
}

struct Storage<T>(Mutex<Contents<T>>);

/// The contents of a disk: the synced value, and the value after each later write.
struct Contents<T> {
    synced: T,
    written: Vec<T>,
    /// Number of writes that came before those in `written`.
    before: u64,
}

impl<T: Clone + Send + 'static> Disk<T> {
    pub(crate) fn new(world: Arc<World>, host: HostId, value: T) -> Self {
        let contents = Contents { synced: value, written: Vec::new(), before: 0 };
        let storage = Arc::new(Storage(Mutex::new(contents)));
        let erased = storage.clone();
        world.with(|state| state.add_disk(host, erased));
        Self { world, host, storage }
    }

    /// Reads the value, including writes that are not synced. Programs and tests may read at any time.
    ///
    /// # Panics
    /// If `f` uses the disk.
    #[track_caller]
    pub fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        let contents = self.storage.lock();
        f(contents.written.last().unwrap_or(&contents.synced))
    }

    /// Reads the value that survives any crash: for tests and their [invariants](crate::Sim::always).
    ///
    /// # Panics
    /// If `f` uses the disk.
    #[track_caller]
    pub fn read_synced<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        f(&self.storage.lock().synced)
    }

    /// Changes the value. This is one write: a crash keeps all of it or nothing. It does not wait, and it is
    /// durable only after the next [sync](Disk::sync).
    ///
    /// # Panics
    /// If `f` uses the disk.
    #[track_caller]
    pub fn write<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let takes_it = self.world.with(|state| state.writes(self.host));
        // Declared before the lock guard, so that it is dropped after it, if the write is ignored or `f`
        // panics.
        let mut value;
        let mut contents = self.storage.lock();
        value = Some(contents.written.last().unwrap_or(&contents.synced).clone());
        let returned = value.as_mut().map(f).expect("set above");
        if takes_it {
            contents.written.extend(value.take());
        }
        returned
    }

    /// Waits until every earlier write is durable, which takes a few milliseconds.
    ///
    /// - *Completes with* `Ok(())`; with an error if a [fault](crate::Fault) strikes here, and then the
    ///   writes may survive a crash or not. Stopped, with the same uncertainty. If the host crashes
    ///   meanwhile, it never completes.
    /// - *If dropped*, the writes may survive a crash or not.
    /// - *Runs on* the calling task, by the clock of its host. [`explore_faults`](crate::explore_faults)
    ///   counts it as an operation of the host.
    /// - *Panics* outside a task.
    pub async fn sync(&self) -> io::Result<()> {
        let until = {
            let contents = self.storage.lock();
            contents.before + contents.written.len() as u64
        };
        let begun = self.world.with(|state| state.begin_sync(self.host));
        let Some(takes) = begun else { forever().await };
        sleep(takes?).await;
        drop(self.storage.make_sure(until));
        Ok(())
    }
}

impl<T> Storage<T> {
    /// Makes the first `until` writes durable. Returns the values that are replaced, so that the caller drops
    /// them without the lock.
    fn make_sure(&self, until: u64) -> Vec<T> {
        let mut contents = self.lock();
        let count = until.saturating_sub(contents.before) as usize;
        let mut passed: Vec<T> = contents.written.drain(..count).collect();
        if let Some(value) = passed.pop() {
            passed.push(core::mem::replace(&mut contents.synced, value));
            contents.before = until;
        }
        passed
    }

    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, Contents<T>> {
        match self.0.try_lock() {
            Ok(contents) => contents,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                panic!("a `Disk` is used inside the closure of its own `read` or `write`")
            }
        }
    }
}

impl<T: Clone + Send + 'static> AnyDisk for Storage<T> {
    fn crash(&self, random: &mut Random) -> DiskCrash {
        let mut contents = self.lock();
        let mut discarded = core::mem::take(&mut contents.written);
        let written = discarded.len();
        let stays = if written == 0 { 0 } else { random.below(written + 1) };
        if stays > 0 {
            core::mem::swap(&mut contents.synced, &mut discarded[stays - 1]);
        }
        contents.before += written as u64;
        DiskCrash { lost: written - stays, written, discarded: Box::new(discarded) }
    }
}

impl<T> Clone for Disk<T> {
    fn clone(&self) -> Self {
        Self { world: self.world.clone(), host: self.host, storage: self.storage.clone() }
    }
}

impl<T: fmt::Debug + Clone + Send + 'static> fmt::Debug for Disk<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = self.storage.lock();
        f.debug_struct("Disk").field("synced", &contents.synced).field("written", &contents.written).finish()
    }
}
