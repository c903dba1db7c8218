//! Threads that act for closed owners. No thread runs a closed [`OwnerThread`](super::OwnerThread) any more.
//! A thread that brings a remote wake to it runs the wake itself, as its *acting owner*.
//!
//! 1. A closed owner has at most one acting thread. That thread may act for it several times, nested.
//! 2. A thread with a remote wake does not wait. If another thread acts for the owner, it leaves the wake to
//!    that thread, which does not finish before it has run all wakes. Only [`Exclusive`] waits.
//! 3. The lock of the registry is held for a few instructions, and no foreign code runs under it: what is
//!    destroyed by a wake may wait for threads that close owners of their own.
//!
//! Owners are compared by their id. Owners without one get no remote wakes.

use super::OwnerId;
use super::owner_thread::SharedOwner;
use crate::Panic;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, process_static, thread_mark};

/// An owner that a thread acts for.
struct Entry {
    owner: OwnerId,
    /// The mark of the acting thread.
    thread: u64,
    depth: usize,
    /// The owner, if there may be wakes to run.
    wakes: Option<Arc<SharedOwner>>,
}

struct Registry {
    entries: Mutex<Entries>,
    freed: Condvar,
}

struct Entries {
    list: Vec<Entry>,
    /// The number of threads that wait for `freed`.
    waiting: usize,
}

process_static! {
    static REGISTRY: Registry =
        Registry { entries: Mutex::new(Entries { list: Vec::new(), waiting: 0 }), freed: Condvar::new() };
}

impl Registry {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Entries {
    fn find(&mut self, owner: OwnerId) -> Option<&mut Entry> {
        self.list.iter_mut().find(|entry| entry.owner == owner)
    }

    /// Makes this thread the acting owner, unless another thread is. Returns true if this thread is.
    fn try_enter(&mut self, owner: OwnerId) -> bool {
        let thread = thread_mark();
        match self.find(owner) {
            Some(entry) if entry.thread == thread => entry.depth += 1,
            Some(_) => return false,
            None => self.list.push(Entry { owner, thread, depth: 1, wakes: None }),
        }
        true
    }
}

/// Proof that this thread acts for an owner that is closed, or is being closed. Dropping it runs the remote
/// wakes.
#[derive(Debug)]
pub(super) struct ActingOwner(OwnerId);

impl ActingOwner {
    /// Makes this thread the acting owner of an owner that it closes, with wakes to run. Waits only for
    /// [`Exclusive`]: before it is closed, no other thread acts for it.
    pub(super) fn closing(owner: &Arc<SharedOwner>) -> Option<Self> {
        let Exclusive(acting) = Exclusive::new(owner.id());
        if let Some(entry) = REGISTRY.entries().find(owner.id()) {
            entry.wakes = Some(owner.clone());
        }
        acting
    }

    /// Makes this thread the acting owner, with wakes to run. Returns `None` if another thread is the acting owner; that thread then handles the wakes.
    pub(super) fn enter(owner: &Arc<SharedOwner>) -> Option<Self> {
        if owner.id() == OwnerId::NONE {
            return None;
        }
        let mut entries = REGISTRY.entries();
        let entered = entries.try_enter(owner.id());
        let before = entries.find(owner.id()).and_then(|entry| entry.wakes.replace(owner.clone()));
        drop(entries);
        drop(before);
        entered.then(|| Self(owner.id()))
    }
}

impl Drop for ActingOwner {
    fn drop(&mut self) {
        let mut first_panic = None;
        loop {
            let mut entries = REGISTRY.entries();
            let Some(at) = entries.list.iter().position(|entry| entry.owner == self.0) else { break };
            let entry = &mut entries.list[at];
            if let Some(owner) = entry.wakes.take() {
                drop(entries);
                if let Err(panic) = Panic::catch(|| owner.run_as_acting_owner()) {
                    first_panic.get_or_insert(panic);
                }
                continue;
            }
            entry.depth -= 1;
            if entry.depth == 0 {
                entries.list.swap_remove(at);
                if entries.waiting > 0 {
                    REGISTRY.freed.notify_all();
                }
            }
            break;
        }
        // A second panic while this thread unwinds would abort the process.
        if let Some(panic) = first_panic
            && !std::thread::panicking()
        {
            panic.resume();
        }
    }
}

/// Proof that no other thread acts for an owner.
#[derive(Debug)]
pub(super) struct Exclusive(Option<ActingOwner>);

impl Exclusive {
    /// Waits until no other thread acts for the owner.
    pub(super) fn new(owner: OwnerId) -> Self {
        if owner == OwnerId::NONE {
            return Self(None);
        }
        let mut entries = REGISTRY.entries();
        while !entries.try_enter(owner) {
            entries.waiting += 1;
            entries = REGISTRY.freed.wait(entries).unwrap_or_else(|poisoned| poisoned.into_inner());
            entries.waiting -= 1;
        }
        Self(Some(ActingOwner(owner)))
    }
}
