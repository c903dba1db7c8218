//! The ledger of waiters and holders of permits, for the deadlock diagnosis. Semaphore, mutex and read-write
//! lock write it while a diagnosis is on. It is not on the fast path: an acquisition that does not wait skips
//! it unless every lock is recorded.
//!
//! 1. A future records its wait before it queues. A grant is recorded under the lock of the queue, before the
//!    node is granted: so the future still exists, and its address still identifies it. The future itself
//!    records the end of the wait.
//! 2. Lock order: the lock of a queue comes before the lock of the ledger. Nothing else is locked under the
//!    ledger's lock.
//! 3. Times are sequence numbers that the ledger assigns, one for each recorded fact.
//! 4. Tasks, locks and futures are identified by their addresses. Addresses are compared and never
//!    dereferenced.

mod holders;
mod table;

use core::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use convoke_core::raw::{Frame, WakerMark, watching};

use holders::Holders;
use table::Table;

/// Number of active diagnoses that want every lock recorded.
static EVERY_LOCK: AtomicUsize = AtomicUsize::new(0);

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger {
    clock: 0,
    waits: Table::new(),
    began: Table::new(),
    granted: Table::new(),
    holders: Table::new(),
});

/// The recorded waits and holders of the process.
#[derive(Debug)]
pub struct Ledger {
    clock: u64,
    /// By the address of the future's node.
    waits: Table<usize, Waiting>,
    /// The nodes by the time at which each wait began.
    began: Table<u64, usize>,
    /// By lock: the number of waits that were granted and whose future has not taken the permits yet. Only if
    /// not 0.
    granted: Table<usize, usize>,
    /// By the address of the lock.
    holders: Table<usize, Holders>,
}

/// A wait: queued, or granted but not yet taken.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Time at which the wait began. It identifies the wait.
    pub began: u64,
    pub lock: usize,
    pub owner: Owner,
    pub place: &'static Location<'static>,
    permits: usize,
    /// Time of the last poll.
    pub polled: u64,
    /// Time of the grant, if it was granted.
    pub granted: Option<u64>,
    /// True if the waker was called after the grant.
    pub woken: bool,
}

/// A holder of permits.
#[derive(Clone, Debug)]
pub struct Holder {
    pub owner: Owner,
    pub place: Option<&'static Location<'static>>,
    pub permits: usize,
    /// True if permits were released by a task that the ledger does not know as a holder: they may have been
    /// these.
    pub doubtful: bool,
}

/// The owner of a future: the task, and the branch of it that has its own waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub task: Option<usize>,
    branch: Option<WakerMark>,
}

impl Owner {
    /// Returns the task that this thread polls, with the given branch.
    fn here(branch: Option<WakerMark>) -> Self {
        Self { task: task_here(), branch }
    }

    /// Returns true if both are in the same task and, as far as is known, in the same branch of it.
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

/// A copy of the ledger.
#[derive(Debug)]
pub struct Copied {
    pub waits: Vec<Waiting>,
    /// Each holder with the address of its lock.
    pub holders: Vec<(usize, Holder)>,
}

/// Copies the ledger. Returns `None` if there are no waits.
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
    /// Returns the lock, and this wait as a holder of what it was granted.
    pub fn as_holder(&self) -> (usize, Holder) {
        let Self { lock, owner, place, permits, .. } = *self;
        (lock, Holder { owner, place: Some(place), permits, doubtful: false })
    }
}

/// Returns true if the wait still goes on and was neither polled nor granted since `before` was copied.
pub fn is_unchanged(before: &Waiting) -> bool {
    let mut ledger = ledger();
    let now = ledger.that_began(before.began);
    now.is_some_and(|now| now.polled == before.polled && now.granted == before.granted)
}

/// Keeps recording on while it exists.
#[derive(Debug)]
pub struct Noting {
    every_lock: bool,
}

impl Noting {
    /// Turns recording on. With `every_lock`, permits that are taken without waiting are recorded too.
    pub fn begin(every_lock: bool) -> Self {
        EVERY_LOCK.fetch_add(usize::from(every_lock), Ordering::SeqCst);
        watching::begin();
        Self { every_lock }
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        EVERY_LOCK.fetch_sub(usize::from(self.every_lock), Ordering::SeqCst);
        // Held while the count goes down, so that nothing is recorded in between.
        let mut ledger = ledger();
        watching::end(move || {
            // Entries that are no longer kept up to date would be wrong when recording is turned on again.
            ledger.waits.clear();
            ledger.began.clear();
            ledger.granted.clear();
            ledger.holders.clear();
        });
    }
}

/// Returns true if recording is on.
#[inline]
pub fn is_on() -> bool {
    watching::is_on()
}

/// Returns true if permits that are taken without waiting are recorded too.
pub fn notes_every_lock() -> bool {
    is_on() && EVERY_LOCK.load(Ordering::Relaxed) != 0
}

/// A request for permits: how many, of which lock, and where in the program.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    pub lock: usize,
    pub permits: usize,
    pub place: Option<&'static Location<'static>>,
    pub branch: Option<WakerMark>,
}

/// Records that the future of this node is about to wait.
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

/// Records that the future of this node was polled and still waits.
pub fn polled(node: usize) {
    let mut ledger = ledger();
    let now = ledger.tick();
    if let Some(waiting) = ledger.waits.get_mut(&node) {
        waiting.polled = now;
    }
}

/// Records that this node is about to be granted. Returns the time at which its wait began, if that was
/// recorded.
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

/// Records that the waker of the wait that began at this time was called.
pub fn woken(began: u64) {
    if let Some(waiting) = ledger().that_began(began) {
        waiting.woken = true;
    }
}

/// Records that the future of this node has taken what it was granted: it becomes a holder.
pub fn took_granted(node: usize) {
    let mut ledger = ledger();
    if let Some(waiting) = ledger.remove(node) {
        let (lock, holder) = waiting.as_holder();
        ledger.hold(lock, holder);
    }
}

/// Records that the future of this node has stopped waiting and holds nothing.
pub fn left(node: usize) {
    ledger().remove(node);
}

/// Records a holder that took its permits without waiting.
pub fn took_at_once(Asking { lock, permits, place, branch }: Asking) {
    let owner = Owner::here(branch);
    ledger().hold(lock, Holder { owner, place, permits, doubtful: false });
}

/// Records that the current task has released permits.
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

/// Returns true if the ledger knows a holder of this lock, or a grant that was not taken yet.
pub fn knows_holders(lock: usize) -> bool {
    let ledger = ledger();
    ledger.holders.get(&lock).is_some() || ledger.granted.get(&lock).is_some()
}

/// Records that the lock was dropped. Another lock may get its address.
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

    /// Returns the wait that began at this time, if it still goes on.
    fn that_began(&mut self, began: u64) -> Option<&mut Waiting> {
        let node = *self.began.get(&began)?;
        self.waits.get_mut(&node)
    }

    /// Removes the wait of this node.
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
