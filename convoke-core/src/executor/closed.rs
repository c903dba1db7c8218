//! The occupants of closed homes. No thread runs a closed home any more; the thread that brings a letter opens it there, one
//! thread at a time.
//!
//! 1. A home that is closed has at most one occupant: a thread, which may be the occupant several times, one inside the other.
//! 2. Nobody waits with a letter. Who finds another thread inside leaves the home to that one, which does not go before it has
//!    opened all letters. Only [`KeepOut`] waits.
//! 3. The lock of the list is held for a few instructions, and no code of others runs under it: what is destroyed inside of a
//!    home may wait for threads that close homes of their own.
//!
//! The number of a home is what is compared. Homes without one get no letters.

use super::OwnerId;
use super::owner_thread::Shared;
use crate::Panic;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, process_static, thread_mark};

struct Occupied {
    home: OwnerId,
    /// The mark of the occupant.
    by: u64,
    times: usize,
    /// The home, if there may be letters in it.
    letters: Option<Arc<Shared>>,
}

struct Occupancy {
    list: Mutex<List>,
    freed: Condvar,
}

struct List {
    occupied: Vec<Occupied>,
    /// How many threads wait for `freed`.
    waiting: usize,
}

process_static! {
    static OCCUPANCY: Occupancy =
        Occupancy { list: Mutex::new(List { occupied: Vec::new(), waiting: 0 }), freed: Condvar::new() };
}

impl Occupancy {
    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl List {
    fn find(&mut self, home: OwnerId) -> Option<&mut Occupied> {
        self.occupied.iter_mut().find(|occupied| occupied.home == home)
    }

    /// Makes this thread the occupant, if no other thread is. Returns whether it is.
    fn occupy(&mut self, home: OwnerId) -> bool {
        let me = thread_mark();
        match self.find(home) {
            Some(occupied) if occupied.by == me => occupied.times += 1,
            Some(_) => return false,
            None => self.occupied.push(Occupied { home, by: me, times: 1, letters: None }),
        }
        true
    }
}

/// This thread is the occupant of a home that is closed, or is just being closed. Letters are opened when it is dropped.
#[derive(Debug)]
pub(super) struct Occupant(OwnerId);

impl Occupant {
    /// Makes this thread the occupant of a home that it closes, with letters to open. Before that only its own thread is
    /// inside; so this waits for nobody but who keeps others out of a home that is not its own.
    pub(super) fn of_closing(home: &Arc<Shared>) -> Option<Self> {
        let KeepOut(occupant) = KeepOut::new(home.id());
        if let Some(occupied) = OCCUPANCY.list().find(home.id()) {
            occupied.letters = Some(home.clone());
        }
        occupant
    }

    /// Makes this thread the occupant, with letters to open; they are left to another thread if that is the occupant.
    pub(super) fn enter(home: &Arc<Shared>) -> Option<Self> {
        if home.id() == OwnerId::NONE {
            return None;
        }
        let mut list = OCCUPANCY.list();
        let entered = list.occupy(home.id());
        let before = list.find(home.id()).and_then(|occupied| occupied.letters.replace(home.clone()));
        drop(list);
        drop(before);
        entered.then(|| Self(home.id()))
    }
}

impl Drop for Occupant {
    fn drop(&mut self) {
        let mut first_panic = None;
        loop {
            let mut list = OCCUPANCY.list();
            let Some(at) = list.occupied.iter().position(|occupied| occupied.home == self.0) else { break };
            let occupied = &mut list.occupied[at];
            if let Some(home) = occupied.letters.take() {
                drop(list);
                if let Err(panic) = Panic::catch(|| home.open_as_occupant()) {
                    first_panic.get_or_insert(panic);
                }
                continue;
            }
            occupied.times -= 1;
            if occupied.times == 0 {
                list.occupied.swap_remove(at);
                if list.waiting > 0 {
                    OCCUPANCY.freed.notify_all();
                }
            }
            break;
        }
        // Inside of a panic a second one would end the process.
        if let Some(panic) = first_panic
            && !std::thread::panicking()
        {
            panic.resume();
        }
    }
}

/// Other threads are kept out of a home.
#[derive(Debug)]
pub(super) struct KeepOut(Option<Occupant>);

impl KeepOut {
    /// Waits until no other thread is inside.
    pub(super) fn new(home: OwnerId) -> Self {
        if home == OwnerId::NONE {
            return Self(None);
        }
        let mut list = OCCUPANCY.list();
        while !list.occupy(home) {
            list.waiting += 1;
            list = OCCUPANCY.freed.wait(list).unwrap_or_else(|poisoned| poisoned.into_inner());
            list.waiting -= 1;
        }
        Self(Some(Occupant(home)))
    }
}
