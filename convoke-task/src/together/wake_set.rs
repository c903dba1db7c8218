//! Wakers of one's own for children inside one task: which of them were woken is written on a board, and their owner is
//! woken once for all of them. No unsafe: a lock, held for a few instructions.

use core::fmt;
use core::task::Waker;
use std::sync::Arc;
use std::task::Wake;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::sync::{Mutex, MutexGuard};

use convoke_core::raw::{wake, wake_if_any};

/// The board, as its owner has it. When the owner goes, bells that are kept elsewhere lead nowhere.
pub struct WakeSet {
    board: Arc<Board>,
}

struct Board {
    state: Mutex<State>,
}

struct State {
    /// The keys of those that were woken.
    rung: Vec<Key>,
    /// The owner's waker, while it waits.
    owner: Option<Waker>,
}

/// Which child a bell is of: its place among them, and a number by which it is told from others that come there later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Where its owner finds it.
    pub place: usize,
    /// Of those in that place, which.
    pub serial: u64,
}

/// What a child's waker leads to.
pub struct WakeFlag {
    key: Key,
    /// Whether the key is on the board, or taken from there and not yet answered. Whoever sets it writes the key there: so
    /// it is there once.
    rung: AtomicBool,
    board: Arc<Board>,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl WakeSet {
    /// A board with nothing on it.
    pub fn new() -> Self {
        Self { board: Arc::new(Board { state: Mutex::new(State { rung: Vec::new(), owner: None }) }) }
    }

    /// A bell that counts as rung: its child is to be polled a first time. It is for the caller to do so, for the key is not on
    /// the board.
    pub fn bell(&self, key: Key) -> Arc<WakeFlag> {
        Arc::new(WakeFlag { key, rung: AtomicBool::new(true), board: self.board.clone() })
    }

    /// What wakes the owner when there is something else for it than a bell.
    pub(crate) fn owner(&self) -> OwnerFlag {
        OwnerFlag { board: self.board.clone() }
    }

    /// Takes the keys off the board. The owner looks at them now: until it waits again nobody need wake it.
    pub fn take_rung(&self, into: &mut impl Extend<Key>) {
        let mut state = self.board.lock();
        let owner = state.owner.take();
        into.extend(state.rung.drain(..));
        drop(state);
        drop(owner);
    }

    /// The owner waits, unless a bell has rung since it last looked: then it is woken at once, and others get their turn
    /// before.
    pub fn wait(&self, waker: &Waker) {
        // Cloned, and dropped, without the lock: it may be anybody's.
        let clone = waker.clone();
        let mut state = self.board.lock();
        if state.rung.is_empty() {
            let before = state.owner.replace(clone);
            drop(state);
            drop(before);
        } else {
            drop(state);
            wake(clone);
        }
    }
}

impl Default for WakeSet {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for WakeSet {
    fn drop(&mut self) {
        let owner = self.board.lock().owner.take();
        drop(owner);
    }
}

impl WakeFlag {
    /// Its owner has taken the key off the board, and polls the child now, once for each time that it was there.
    pub fn answer(&self) {
        let rung = self.rung.swap(false, Ordering::AcqRel);
        debug_assert!(rung, "answered once for each time that it was on the board");
    }

    /// Its owner has found the key, and polls the child if this is true: the key may have been there more than once.
    pub(crate) fn take_ring(&self) -> bool {
        self.rung.swap(false, Ordering::AcqRel)
    }

    /// The child is gone: whoever rings from now on is not heard.
    pub fn silence(&self) {
        self.rung.store(true, Ordering::Release);
    }

    /// Wakes the child: its key is on the board, and its owner woken if it waits.
    pub fn ring(&self) {
        if self.rung.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut state = self.board.lock();
        state.rung.push(self.key);
        let owner = state.owner.take();
        drop(state);
        // Outside the lock: a waker may be anybody's.
        wake_if_any(owner);
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

/// Wakes the owner of the bells.
#[derive(Clone)]
pub(crate) struct OwnerFlag {
    board: Arc<Board>,
}

impl OwnerFlag {
    pub(crate) fn ring(&self) {
        let owner = self.board.lock().owner.take();
        wake_if_any(owner);
    }
}

impl fmt::Debug for WakeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeSet").finish_non_exhaustive()
    }
}

impl fmt::Debug for WakeFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeFlag").field("key", &self.key).finish_non_exhaustive()
    }
}
