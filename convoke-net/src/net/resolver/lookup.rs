//! Shared lookups. The first task that asks for a name starts the lookup, others join it, and it is stopped
//! when the last one has left. It belongs to none of them: the task that started it may leave before the
//! others.
//!
//! `Lookups::join` gives each waiter a `LookupWaiter`, and the first one also a `LookupRun`. The holder of the
//! `LookupRun` owes an answer. All methods may be called on any thread; no lock is held while a task is woken
//! or a stop callback runs.

use core::net::SocketAddr;
use std::io;
use std::sync::{Arc, OnceLock, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::{Panic, StopReason, StopSource, StopToken};
use convoke_sync::Event;

use super::LookupError;
use convoke_io::driver::shut_down;

/// All running lookups, by name.
#[derive(Debug)]
pub struct Lookups {
    /// Sorted by host. Few run at a time: a hash map would be more code than all of this file.
    running: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    lookup: Arc<Lookup>,
    /// The number of `LookupWaiter`s. When it reaches zero the entry is removed.
    waiters: usize,
}

/// The state that a lookup shares with its waiters.
#[derive(Debug)]
struct Lookup {
    host: Arc<str>,
    found: OnceLock<Result<Arc<[SocketAddr]>, Arc<io::Error>>>,
    /// Set when `found` is.
    done: Event,
    source: StopSource,
}

/// A waiter of a lookup. Dropping it leaves the lookup.
#[derive(Debug)]
pub struct LookupWaiter {
    lookups: Arc<Lookups>,
    lookup: Arc<Lookup>,
}

/// The obligation to answer a lookup. If it is dropped without an answer the waiters get an error.
#[derive(Debug)]
pub struct LookupRun {
    lookups: Arc<Lookups>,
    lookup: Arc<Lookup>,
}

impl Default for Lookups {
    /// Creates an empty table.
    fn default() -> Self {
        Self { running: Mutex::new(Vec::new()) }
    }
}

/// Returns the index of a host's lookup, or where it would be.
fn place(running: &[Entry], host: &str) -> Result<usize, usize> {
    running.binary_search_by(|entry| (*entry.lookup.host).cmp(host))
}

impl Lookups {
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the lookup of this host. The first waiter also gets the `LookupRun`, and starts the lookup.
    pub fn join(self: &Arc<Self>, host: &str) -> (LookupWaiter, Option<LookupRun>) {
        let mut running = self.lock();
        let at = place(&running, host);
        if let Ok(at) = at {
            let entry = &mut running[at];
            entry.waiters += 1;
            return (LookupWaiter { lookups: self.clone(), lookup: entry.lookup.clone() }, None);
        }
        let lookup = Arc::new(Lookup {
            host: host.into(),
            found: OnceLock::new(),
            done: Event::new(),
            source: StopSource::new(),
        });
        running.insert(at.unwrap_or_else(|at| at), Entry { lookup: lookup.clone(), waiters: 1 });
        let run = LookupRun { lookups: self.clone(), lookup: lookup.clone() };
        (LookupWaiter { lookups: self.clone(), lookup }, Some(run))
    }

    /// Removes a lookup, so that the next request for its name starts another one.
    fn remove(running: &mut Vec<Entry>, lookup: &Arc<Lookup>) {
        if let Ok(at) = place(running, &lookup.host)
            && Arc::ptr_eq(&running[at].lookup, lookup)
        {
            running.remove(at);
        }
    }
}

impl LookupWaiter {
    /// Waits for the result of the lookup, or for a stop.
    pub async fn found(&self) -> io::Result<Vec<SocketAddr>> {
        self.lookup.done.wait().await;
        match self.lookup.found.get().expect("`found` is set before `done`") {
            Ok(addresses) => Ok(addresses.to_vec()),
            Err(error) => Err(LookupError::new(self.lookup.host.clone(), error.clone()).into()),
        }
    }
}

impl Drop for LookupWaiter {
    fn drop(&mut self) {
        let mut running = self.lookups.lock();
        let Ok(at) = place(&running, &self.lookup.host) else { return };
        let entry = &mut running[at];
        if !Arc::ptr_eq(&entry.lookup, &self.lookup) {
            return;
        }
        entry.waiters -= 1;
        if entry.waiters == 0 {
            Lookups::remove(&mut running, &self.lookup);
            drop(running);
            // The panic hook has reported a panic of a stop callback. It does not concern the waiter that
            // leaves.
            let _ = Panic::catch(|| self.lookup.source.request_stop(StopReason::Abandoned));
        }
    }
}

impl LookupRun {
    /// Returns the name to look up.
    pub fn host(&self) -> Arc<str> {
        self.lookup.host.clone()
    }

    /// Returns a token that is stopped when there are no waiters left.
    pub fn stop_token(&self) -> StopToken {
        self.lookup.source.token()
    }

    /// Answers the lookup with this result.
    pub fn finish(self, found: io::Result<Vec<SocketAddr>>) {
        self.answer(found);
    }

    fn answer(&self, found: io::Result<Vec<SocketAddr>>) {
        // The first answer counts: after `finish` the destructor has nothing to add.
        if self.lookup.found.set(found.map(Arc::from).map_err(Arc::new)).is_ok() {
            Lookups::remove(&mut self.lookups.lock(), &self.lookup);
            // A waker may panic, and this may run during unwinding.
            let _ = Panic::catch(|| self.lookup.done.set());
        }
    }
}

impl Drop for LookupRun {
    fn drop(&mut self) {
        if self.lookup.found.get().is_none() {
            let has_panicked = std::thread::panicking();
            self.answer(Err(if has_panicked {
                io::Error::other("the lookup panicked")
            } else {
                shut_down()
            }));
        }
    }
}
