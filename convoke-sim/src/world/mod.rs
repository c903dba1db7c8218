//! The world: the state that all hosts of a simulation share. All of it is behind one lock. [`World::with`]
//! takes the lock and runs a closure on the [`WorldState`]. Code of programs (wakers, destructors) never runs
//! under the lock: the driver of a host notifies the waiters of that host, and [`World::with`] those of hosts
//! that are down, after it has released the lock.
//!
//! | file | contents |
//! | --- | --- |
//! | `hosts.rs` | hosts, addresses, limits |
//! | `sockets.rs`, `socket.rs` | the table of sockets; sockets of all kinds: opening, closing, options |
//! | `stream.rs`, `connecting.rs` | streams, and how two of them connect |
//! | `listener.rs`, `datagrams.rs` | the two other kinds of sockets |
//! | `waiting.rs`, `notifications.rs` | operations and wakers that wait for a socket; those that wait no more |
//! | `ready.rs` | hosts that have something to run |
//! | `packet.rs`, `underway.rs`, `link.rs` | packets, their arrival times, and the links that they use |
//! | `disks.rs` | the disks of hosts |
//! | `crashed.rs` | crashes, and the sockets of crashed hosts |
//! | `fault.rs` | injected faults |
//! | `event.rs`, `trace.rs` | what has happened, and the trace of it |

mod connecting;
mod crashed;
mod datagrams;
mod disks;
mod event;
mod fault;
pub(crate) mod hosts;
mod link;
mod listener;
mod notifications;
mod packet;
mod ready;
mod socket;
mod sockets;
mod stream;
mod trace;
mod underway;
mod waiting;

pub(crate) use disks::{AnyDisk, DiskCrash};
pub use fault::Fault;
pub(crate) use fault::Plan;
pub(crate) use hosts::{HostId, Transport};
pub use link::Link;
pub(crate) use socket::Taking;
pub(crate) use sockets::SocketId;
pub use trace::{TRACE_EVENTS, TRACE_LINES, TraceLine};

use core::time::Duration;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use convoke_core::Panic;
use convoke_core::raw::Random;
use convoke_core::raw::sync::{Condvar, Mutex, MutexGuard};

use crashed::CrashedSockets;
use hosts::Host;
use link::Links;
use notifications::Notifications;
use ready::Ready;
use sockets::Sockets;
use trace::Trace;
pub(crate) use trace::{PRINTS, RecordedTrace};
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
    sockets: Sockets,
    crashed: CrashedSockets,
    underway: Underway,
    ready: Ready,
    /// Finished operations and wakers of hosts that are down, to be notified after the lock is released.
    finished: Notifications,
    /// Values of crashed disks, to be dropped after the lock is released.
    discarded: Vec<Box<dyn Any + Send>>,
    /// True if the next `wait` of a driver that is alone returns at once.
    woken: bool,
    /// True if a thread blocks in `wait`.
    sleeps: bool,
    /// True if a thread that blocks in `wait` must be woken.
    wakes: bool,
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
            sockets: Sockets::default(),
            crashed: CrashedSockets::default(),
            underway: Underway::default(),
            ready: Ready::default(),
            finished: Notifications::default(),
            discarded: Vec::new(),
            woken: false,
            sleeps: false,
            wakes: false,
            waiting_for_idle: Vec::new(),
        };
        Arc::new(Self { state: Mutex::new(state), woken: Condvar::new(), start: Instant::now() })
    }

    /// Returns the machine's time at the start.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Calls `act` under the lock. Then, without the lock, completes the operations that `act` has finished.
    #[inline]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut WorldState) -> R) -> R {
        let mut state = self.lock();
        let result = act(&mut state);
        if state.has_consequences() {
            self.follow_up(state);
        }
        result
    }

    /// Does what must be done without the lock. Out of line: most calls have no consequences.
    #[inline(never)]
    fn follow_up(&self, mut state: MutexGuard<'_, WorldState>) {
        let finished = core::mem::take(&mut state.finished);
        let discarded = core::mem::take(&mut state.discarded);
        state.woken |= state.has_become_idle();
        let wakes = state.sleeps && (state.woken || core::mem::take(&mut state.wakes));
        drop(state);
        if wakes {
            self.woken.notify_all();
        }
        drop(finished);
        for disk in discarded {
            // The panic hook has already reported a panic of a destructor.
            let _ = Panic::catch(|| drop(disk));
        }
    }

    /// Returns the simulated time.
    pub(crate) fn now(&self) -> Duration {
        self.lock().now
    }

    /// Delivers what has arrived by now, and notifies the waiters of a host.
    pub(crate) fn check(&self, host: HostId) {
        let notifications = self.with(|state| {
            state.deliver_due();
            state.take_notifications(host)
        });
        drop(notifications);
    }

    /// Advances the time to `until` or to the next arrival, whichever is earlier, and notifies the waiters of
    /// a host. If there is neither, blocks until another thread wakes it.
    pub(crate) fn wait(&self, host: HostId, until: Option<Duration>) {
        let mut state = self.lock();
        while !core::mem::take(&mut state.woken) && state.host(host).notifications.is_empty() {
            if let Some(next) = state.underway.next().into_iter().chain(until).min() {
                state.now = state.now.max(next);
                break;
            }
            (state.sleeps, state.wakes) = (true, false);
            state = self.woken.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.sleeps = false;
        }
        drop(state);
        self.check(host);
    }

    /// Wakes the driver of a host.
    pub(crate) fn wake(&self, host: HostId) {
        self.with(|state| {
            state.woken = true;
            state.mark_ready(host);
        });
    }

    fn lock(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorldState {
    /// Returns true if something must be done after the lock is released.
    #[inline]
    fn has_consequences(&self) -> bool {
        !self.finished.is_empty()
            || !self.discarded.is_empty()
            || !self.waiting_for_idle.is_empty()
            || self.sleeps && (self.woken || self.wakes)
    }

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
