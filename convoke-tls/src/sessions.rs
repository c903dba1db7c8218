//! The sessions that an acceptor remembers: a map with a bound.
//!
//! That of rustls searches all of its keys when a session is taken, which every resumption does. With the 256 that it has by default
//! that is nothing; a server with more clients than those resumes hardly any.

use core::fmt;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use rustls::server::StoresServerSessions;

/// Sessions by their keys, at most a number of them. The oldest are forgotten.
pub(crate) struct Sessions {
    most: usize,
    state: Mutex<Remembered>,
}

#[derive(Default)]
struct Remembered {
    /// The number tells which entry of `order` is the session's.
    sessions: HashMap<Arc<[u8]>, (u64, Vec<u8>)>,
    /// Keys from the oldest on, also of sessions that were taken since.
    order: VecDeque<(u64, Arc<[u8]>)>,
    next: u64,
}

impl Sessions {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Remembered {
    fn put(&mut self, key: Arc<[u8]>, value: Vec<u8>, most: usize) {
        let number = self.next;
        self.next += 1;
        self.sessions.insert(key.clone(), (number, value));
        self.order.push_back((number, key));
        while self.sessions.len() > most {
            let Some((number, key)) = self.order.pop_front() else { break };
            if is_of(&self.sessions, number, &key) {
                self.sessions.remove(&key);
            }
        }
        // As many again were taken: this is rare enough to cost each of them little.
        if self.order.len() > most.saturating_mul(2) {
            self.order.retain(|(number, key)| is_of(&self.sessions, *number, key));
        }
    }
}

/// Returns true if this entry is that of a session which is remembered.
fn is_of(sessions: &HashMap<Arc<[u8]>, (u64, Vec<u8>)>, number: u64, key: &[u8]) -> bool {
    sessions.get(key).is_some_and(|(own, _)| *own == number)
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.lock().put(key.into(), value, self.most);
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.lock().sessions.get(key).map(|(_, value)| value.clone())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.lock().sessions.remove(key).map(|(_, value)| value)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl fmt::Debug for Sessions {
    /// Shows no session.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.lock().sessions.len();
        f.debug_struct("Sessions").field("most", &self.most).field("count", &count).finish()
    }
}
