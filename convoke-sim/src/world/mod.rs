//! The world: the state that all hosts of a simulation share. All of it is behind one lock. [`World::with`]
//! takes the lock, runs a closure on the [`WorldState`], and wakes waiters after it has released the lock.
//! Code of programs (wakers, destructors) never runs under the lock.
//!
//! | file | contents |
//! | --- | --- |
//! | `hosts.rs` | hosts, addresses, limits |
//! | `socket.rs` | sockets of all kinds: opening, closing, options |
//! | `stream.rs`, `connecting.rs` | streams, and how two of them connect |
//! | `listener.rs`, `datagrams.rs` | the two other kinds of sockets |
//! | `waiting.rs` | operations and wakers that wait for a socket |
//! | `packet.rs`, `underway.rs`, `link.rs` | packets, their arrival times, and the links that they use |
//! | `disks.rs` | the disks of hosts |
//! | `crashed.rs` | crashes, and the sockets of crashed hosts |
//! | `fault.rs` | injected faults |
//! | `trace.rs` | the trace of what has happened |

mod connecting;
mod crashed;
mod datagrams;
mod disks;
mod fault;
mod hosts;
mod link;
mod listener;
mod packet;
mod socket;
mod stream;
mod trace;
mod underway;
mod waiting;

pub(crate) use disks::{AnyDisk, DiskCrash};
pub use fault::Fault;
pub(crate) use fault::Plan;
pub(crate) use hosts::{HostId, Transport};
pub use link::Link;
pub(crate) use socket::{SocketId, Taking};
pub use trace::{TRACE_LINES, TraceLine};

use core::time::Duration;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use convoke_core::Panic;
use convoke_core::raw::Random;
use convoke_core::raw::sync::{Condvar, Mutex, MutexGuard};
use convoke_io::driver::Finished;

use crashed::CrashedSockets;
use hosts::Host;
use link::Links;
use socket::Socket;
pub(crate) use trace::PRINTS;
use trace::Trace;
use underway::Underway;

/// The shared state of a simulation behind its lock, and its start time.
pub(crate) struct World {
    state: Mutex<WorldState>,
    woken: Condvar,
    /// The machine's time at the start.
    start: Instant,
}

/// The part of the world behind the lock.
pub(crate) struct WorldState {
    /// Simulated time since the start.
    pub(crate) now: Duration,
    pub(crate) random: Random,
    pub(crate) hosts: Vec<Host>,
    pub(crate) links: Links,
    pub(crate) trace: Trace,
    pub(crate) plan: Option<Plan>,
    /// The run has ended: writes of destructors have no effect.
    pub(crate) is_over: bool,
    sockets: BTreeMap<SocketId, Socket>,
    crashed: CrashedSockets,
    sockets_added: u64,
    underway: Underway,
    /// Finished operations and wakers, to be completed after the lock is released.
    finished: Vec<Finished>,
    /// Values of crashed disks, to be dropped after the lock is released.
    discarded: Vec<Box<dyn Any + Send>>,
    woken: bool,
    /// Hosts whose drivers reported operations in flight, and are woken when there are none left.
    pub(crate) waiting_for_idle: Vec<HostId>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let state = WorldState {
            now: Duration::ZERO,
            random: Random::new(seed),
            hosts: Vec::new(),
            links: Links::default(),
            trace: Trace::new(),
            plan: None,
            is_over: false,
            sockets: BTreeMap::new(),
            crashed: CrashedSockets::default(),
            sockets_added: 0,
            underway: Underway::default(),
            finished: Vec::new(),
            discarded: Vec::new(),
            woken: false,
            waiting_for_idle: Vec::new(),
        };
        Arc::new(Self { state: Mutex::new(state), woken: Condvar::new(), start: Instant::now() })
    }

    /// Returns the machine's time at the start.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Calls `act` under the lock. Then, without the lock, completes the operations that `act` has finished.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut WorldState) -> R) -> R {
        let mut state = self.lock();
        let result = act(&mut state);
        let finished = core::mem::take(&mut state.finished);
        let discarded = core::mem::take(&mut state.discarded);
        let wakes = !state.waiting_for_idle.is_empty() && state.has_become_idle();
        drop(state);
        drop(finished);
        for disk in discarded {
            // The panic hook has already reported a panic of a destructor.
            let _ = Panic::catch(|| drop(disk));
        }
        if wakes {
            self.wake();
        }
        result
    }

    /// Returns the simulated time of the next arrival.
    pub(crate) fn next_arrival(&self) -> Option<Duration> {
        self.lock().underway.next()
    }

    /// Advances the time to `to`, unless it is past, and delivers what arrives until then.
    pub(crate) fn jump(&self, to: Duration) {
        self.with(|state| {
            state.now = state.now.max(to);
            state.deliver_due();
        });
    }

    /// Advances the time to `until` or to the next arrival, whichever is earlier. If there is neither, blocks
    /// until another thread wakes it.
    pub(crate) fn wait(&self, until: Option<Duration>) {
        let mut state = self.lock();
        loop {
            if core::mem::take(&mut state.woken) {
                return;
            }
            if let Some(next) = state.underway.next().into_iter().chain(until).min() {
                drop(state);
                return self.jump(next);
            }
            state = self.woken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn wake(&self) {
        self.lock().woken = true;
        self.woken.notify_all();
    }

    pub(crate) fn choose(&self, queued: usize) -> usize {
        let mut state = self.lock();
        let chosen = state.random.below(queued);
        state.trace.note_choice(chosen);
        chosen
    }

    fn lock(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorldState {
    /// Returns true if a host that waited for it has no operation in flight any more, and removes it from the
    /// list.
    fn has_become_idle(&mut self) -> bool {
        let (hosts, before) = (&self.hosts, self.waiting_for_idle.len());
        self.waiting_for_idle.retain(|host| hosts[host.0].in_flight > 0);
        self.waiting_for_idle.len() < before
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("now", &self.lock().now).finish_non_exhaustive()
    }
}
