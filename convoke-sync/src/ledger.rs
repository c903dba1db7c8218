//! Who waits for permits, and who has them: written by semaphore, mutex and read-write lock while somebody diagnoses, off
//! the way of those that do not have to wait.
//!
//! 1. A wait is noted by its future before it is queued. That it was granted is noted under the lock of its queue, before it
//!    is: so the future cannot have left, and its address is still its own. Its end is noted by the future.
//! 2. The lock of the ledger comes after those of all queues, and nothing else is locked under it.
//! 3. Times are numbers that the ledger gives out, one for each thing that is noted.
//! 4. Tasks, locks and futures are known by their addresses, which are compared and never followed.

use core::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use convoke_core::raw::{Frame, WakerMark, watching};

use super::holders::Holders;
use super::table::Table;

/// How many of those who diagnose want every lock noted.
static EVERY_LOCK: AtomicUsize = AtomicUsize::new(0);

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger {
    clock: 0,
    waits: Table::new(),
    began: Table::new(),
    granted: Table::new(),
    holders: Table::new(),
});

/// See the head of this file.
#[derive(Debug)]
pub struct Ledger {
    clock: u64,
    /// By the address of the future's node.
    waits: Table<usize, Waiting>,
    /// The nodes by the time at which each began to wait.
    began: Table<u64, usize>,
    /// Of each lock: how many were granted and have not taken it, if any.
    granted: Table<usize, usize>,
    /// By the address of the lock.
    holders: Table<usize, Holders>,
}

/// One who waits, or was granted and has not taken it.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// When it began, by which it is known.
    pub began: u64,
    pub lock: usize,
    pub owner: Owner,
    pub place: &'static Location<'static>,
    permits: usize,
    /// When it was polled last.
    pub polled: u64,
    /// When it was granted.
    pub granted: Option<u64>,
    /// Whether its waker was called after that.
    pub woken: bool,
}

/// One who has permits.
#[derive(Clone, Debug)]
pub struct Holder {
    pub owner: Owner,
    pub place: Option<&'static Location<'static>>,
    pub permits: usize,
    /// Somebody has given permits back whom the ledger does not know, or knows as another: perhaps these.
    pub doubtful: bool,
}

/// Whose future it is: the task, and the branch of it that has a waker of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub task: Option<usize>,
    branch: Option<WakerMark>,
}

impl Owner {
    /// That of what is polled now, with this waker.
    fn here(branch: Option<WakerMark>) -> Self {
        Self { task: task_here(), branch }
    }

    /// Whether they are in one task and, as far as one can see, in one branch of it.
    pub fn is_same(self, other: Self) -> bool {
        let same_branch = self.branch == other.branch || self.branch.is_none() || other.branch.is_none();
        self.task.is_some() && self.task == other.task && same_branch
    }
}

/// Returns the address of the task that this thread polls, if it polls one.
fn task_here() -> Option<usize> {
    Frame::current(|frame| frame.map(|frame| frame.operation_owner().owner_ref().address().addr().get()))
}

fn ledger() -> MutexGuard<'static, Ledger> {
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was noted at one moment.
#[derive(Debug)]
pub struct Copied {
    pub waits: Vec<Waiting>,
    /// Each with its lock.
    pub holders: Vec<(usize, Holder)>,
}

/// What is noted this moment. None if nobody waits.
pub fn copy() -> Option<Copied> {
    let ledger = ledger();
    if ledger.waits.is_empty() {
        return None;
    }
    let holders = ledger.holders.iter();
    let holders = holders.flat_map(|(lock, all)| all.copied().map(|holder| (*lock, holder)));
    let waits = ledger.waits.iter().map(|(_, waiting)| waiting.clone());
    Some(Copied { waits: waits.collect(), holders: holders.collect() })
}

impl Waiting {
    /// Its lock, and itself as one who has what it was granted.
    pub fn as_holder(&self) -> (usize, Holder) {
        let Self { lock, owner, place, permits, .. } = *self;
        (lock, Holder { owner, place: Some(place), permits, doubtful: false })
    }
}

/// Whether this wait is as it was: nobody has polled or granted it since.
pub fn is_unchanged(before: &Waiting) -> bool {
    let mut ledger = ledger();
    let now = ledger.that_began(before.began);
    now.is_some_and(|now| now.polled == before.polled && now.granted == before.granted)
}

/// While it exists, the ledger is written.
#[derive(Debug)]
pub struct Noting {
    every_lock: bool,
}

impl Noting {
    pub fn begin(every_lock: bool) -> Self {
        EVERY_LOCK.fetch_add(usize::from(every_lock), Ordering::SeqCst);
        watching::begin();
        Self { every_lock }
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        EVERY_LOCK.fetch_sub(usize::from(self.every_lock), Ordering::SeqCst);
        // Held while the count goes down: nothing is noted in between.
        let mut ledger = ledger();
        watching::end(move || {
            // What is not kept up to date would be wrong later.
            ledger.waits.clear();
            ledger.began.clear();
            ledger.granted.clear();
            ledger.holders.clear();
        });
    }
}

/// Whether somebody diagnoses.
#[inline]
pub fn is_on() -> bool {
    watching::is_on()
}

/// Whether also those are noted who get permits without waiting.
pub fn notes_every_lock() -> bool {
    is_on() && EVERY_LOCK.load(Ordering::Relaxed) != 0
}

/// A future that asks for permits: whose, and where.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    pub lock: usize,
    pub permits: usize,
    pub place: Option<&'static Location<'static>>,
    pub branch: Option<WakerMark>,
}

/// The future of this node is about to wait.
pub fn waits(node: usize, asking: Asking) {
    let Asking { lock, permits, place, branch } = asking;
    let (Some(place), owner) = (place, Owner::here(branch)) else { return };
    let mut ledger = ledger();
    let began = ledger.tick();
    let (granted, woken) = (None, false);
    ledger.remove(node);
    ledger.began.insert(began, node);
    ledger.waits.insert(node, Waiting { began, lock, owner, place, permits, polled: began, granted, woken });
}

/// It was polled, and still waits.
pub fn polled(node: usize) {
    let mut ledger = ledger();
    let now = ledger.tick();
    if let Some(waiting) = ledger.waits.get_mut(&node) {
        waiting.polled = now;
    }
}

/// It is about to be granted. When it began to wait, if that was noted.
pub fn granted(node: usize) -> Option<u64> {
    let mut ledger = ledger();
    let now = ledger.tick();
    let waiting = ledger.waits.get_mut(&node)?;
    let (began, lock) = (waiting.began, waiting.lock);
    if waiting.granted.replace(now).is_none() {
        *ledger.granted.get_or_make(lock, || 0) += 1;
    }
    Some(began)
}

/// The waker of the one that began to wait then was called.
pub fn woken(began: u64) {
    if let Some(waiting) = ledger().that_began(began) {
        waiting.woken = true;
    }
}

/// The future of this node has taken what it was granted: it is a holder from now on.
pub fn took_granted(node: usize) {
    let mut ledger = ledger();
    if let Some(waiting) = ledger.remove(node) {
        let (lock, holder) = waiting.as_holder();
        ledger.hold(lock, holder);
    }
}

/// The future of this node waits no more, and has nothing.
pub fn left(node: usize) {
    ledger().remove(node);
}

/// Somebody has permits without having waited.
pub fn took_at_once(Asking { lock, permits, place, branch }: Asking) {
    let owner = Owner::here(branch);
    ledger().hold(lock, Holder { owner, place, permits, doubtful: false });
}

/// So many were given back, by the task that this thread is in.
pub fn gave_back(lock: usize, permits: usize) {
    let task = Owner::here(None).task;
    let mut ledger = ledger();
    let now = ledger.tick();
    let Some(holders) = ledger.holders.get_mut(&lock) else { return };
    holders.gave_back(task, permits, now);
    if holders.is_empty() {
        ledger.holders.remove(&lock);
    }
}

/// Whether somebody is noted who has permits of this lock, or was granted some.
pub fn knows_holders(lock: usize) -> bool {
    let ledger = ledger();
    ledger.holders.get(&lock).is_some() || ledger.granted.get(&lock).is_some()
}

/// The lock is gone. Another may come to its place.
pub fn gone(lock: usize) {
    ledger().holders.remove(&lock);
}

impl Ledger {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn hold(&mut self, lock: usize, holder: Holder) {
        let now = self.tick();
        self.holders.get_or_make(lock, Holders::new).add(now, holder);
    }

    /// The wait that began at this time, if it is not over.
    fn that_began(&mut self, began: u64) -> Option<&mut Waiting> {
        let node = *self.began.get(&began)?;
        self.waits.get_mut(&node)
    }

    /// A wait is over.
    fn remove(&mut self, node: usize) -> Option<Waiting> {
        let waiting = self.waits.remove(&node)?;
        self.began.remove(&waiting.began);
        if waiting.granted.is_some()
            && let Some(granted) = self.granted.get_mut(&waiting.lock)
        {
            *granted -= 1;
            if *granted == 0 {
                self.granted.remove(&waiting.lock);
            }
        }
        Some(waiting)
    }
}
