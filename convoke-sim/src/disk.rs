//! `Disk`: what a host finds again after a crash. The smallest disk that is honest: a value, writes to it, and a sync without which
//! none of them is sure to stay. It lives beside the world, which tells it when its host crashes.

use core::fmt;
use std::io;
use std::sync::{Arc, TryLockError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_exec::time::sleep;
use convoke_task::forever;

use crate::world::{Crashed, HostId, Platter, World};
use convoke_core::raw::Random;

/// A value that outlives the crashes of its host, made by [`Sim::disk`](crate::Sim::disk). Clones are the same disk.
///
/// What is [written](Disk::write) is there for whoever [reads](Disk::read), and is sure to survive a crash only after a
/// [sync](Disk::sync). Of the writes since then a crash leaves a beginning: none of them, all of them or some, as the seed decides,
/// in their order. A host that has crashed, and a run that is over, write nothing: destructors cannot save what was not synced.
///
/// Each write keeps a copy of the value until the next sync, so it should be small, or cheap to clone.
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
    surface: Arc<Surface<T>>,
}

struct Surface<T>(Mutex<Layers<T>>);

/// What is on a disk: the value that was synced, and what each write since then has made of it.
struct Layers<T> {
    synced: T,
    written: Vec<T>,
    /// How many were written before those, in all.
    before: u64,
}

impl<T: Clone + Send + 'static> Disk<T> {
    pub(crate) fn new(world: Arc<World>, host: HostId, value: T) -> Self {
        let layers = Layers { synced: value, written: Vec::new(), before: 0 };
        let surface = Arc::new(Surface(Mutex::new(layers)));
        let platter = surface.clone();
        world.with(|state| state.add_disk(host, platter));
        Self { world, host, surface }
    }

    /// Reads the value, with all that was written. Programs and tests may do so at any time.
    ///
    /// # Panics
    /// If the disk is used in `f`; so do all.
    #[track_caller]
    pub fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        let layers = self.surface.lock();
        f(layers.written.last().unwrap_or(&layers.synced))
    }

    /// Reads what is sure to be there after a crash: for tests, and their [invariants](crate::Sim::always).
    #[track_caller]
    pub fn read_synced<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        f(&self.surface.lock().synced)
    }

    /// Changes the value. That is one write: after a crash all of it is there, or nothing. It does not wait, and is not sure to
    /// stay before the next [sync](Disk::sync).
    #[track_caller]
    pub fn write<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let takes_it = self.world.with(|state| state.writes(self.host));
        // Declared before the lock is taken, and so dropped without it, if the disk does not take it or `f` panics.
        let mut value;
        let mut layers = self.surface.lock();
        value = Some(layers.written.last().unwrap_or(&layers.synced).clone());
        let returned = value.as_mut().map(f).expect("put there above");
        if takes_it {
            layers.written.extend(value.take());
        }
        returned
    }

    /// Waits until all that was written before is sure to stay: a few milliseconds.
    ///
    /// - *Completes with* nothing; an error, if a [fault](crate::Fault) strikes here: then what was written may stay or not. Stopped,
    ///   with the same doubt. If the host crashes meanwhile, not at all.
    /// - *If dropped*, what was written may stay or not.
    /// - *Runs on* the task, by the clock of its host. For [`explore_faults`](crate::explore_faults) it is an operation of the host.
    /// - *Panics* outside a task.
    pub async fn sync(&self) -> io::Result<()> {
        let until = {
            let layers = self.surface.lock();
            layers.before + layers.written.len() as u64
        };
        let begun = self.world.with(|state| state.begin_sync(self.host));
        let Some(takes) = begun else { forever().await };
        sleep(takes?).await;
        drop(self.surface.make_sure(until));
        Ok(())
    }
}

impl<T> Surface<T> {
    /// The writes up to this one, of all that there were, are sure to stay. Returns the values that this replaces, to be dropped
    /// without the lock.
    fn make_sure(&self, until: u64) -> Vec<T> {
        let mut layers = self.lock();
        let count = until.saturating_sub(layers.before) as usize;
        let mut passed: Vec<T> = layers.written.drain(..count).collect();
        if let Some(value) = passed.pop() {
            passed.push(core::mem::replace(&mut layers.synced, value));
            layers.before = until;
        }
        passed
    }

    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, Layers<T>> {
        match self.0.try_lock() {
            Ok(layers) => layers,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => panic!("a disk is used while it is being read or written"),
        }
    }
}

impl<T: Clone + Send + 'static> Platter for Surface<T> {
    fn crash(&self, random: &mut Random) -> Crashed {
        let mut layers = self.lock();
        let mut remains = core::mem::take(&mut layers.written);
        let written = remains.len();
        let stays = if written == 0 { 0 } else { random.below(written + 1) };
        if stays > 0 {
            core::mem::swap(&mut layers.synced, &mut remains[stays - 1]);
        }
        layers.before += written as u64;
        Crashed { lost: written - stays, written, remains: Box::new(remains) }
    }
}

impl<T> Clone for Disk<T> {
    fn clone(&self) -> Self {
        Self { world: self.world.clone(), host: self.host, surface: self.surface.clone() }
    }
}

impl<T: fmt::Debug + Clone + Send + 'static> fmt::Debug for Disk<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layers = self.surface.lock();
        f.debug_struct("Disk").field("synced", &layers.synced).field("written", &layers.written).finish()
    }
}
