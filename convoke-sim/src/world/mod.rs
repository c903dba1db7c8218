//! The world: what the hosts of a simulation share. All of it lies behind one lock; those who wait are told without it.
//!
//! `hosts.rs` is who is there, `socket.rs` what they hold, `stream.rs` (which two become by `connecting.rs`), `listener.rs` and `datagrams.rs` the three kinds of
//! it; `waiting.rs` is how operations wait for them. `packet.rs` is what goes over the `link.rs` between two hosts, and `underway.rs` when it
//! arrives. `fault.rs` is what is done to the program on purpose, `trace.rs` what has happened.

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

pub(crate) use disks::{Crashed, Platter};
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

/// See the head of this file.
pub(crate) struct World {
    state: Mutex<State>,
    woken: Condvar,
    /// What the machine's clock showed when it began.
    start: Instant,
}

/// What is behind the lock.
pub(crate) struct State {
    /// How much time has passed.
    pub(crate) now: Duration,
    pub(crate) random: Random,
    pub(crate) hosts: Vec<Host>,
    pub(crate) links: Links,
    pub(crate) trace: Trace,
    pub(crate) plan: Option<Plan>,
    /// The run has ended: what is still destroyed changes nothing.
    pub(crate) is_over: bool,
    sockets: BTreeMap<SocketId, Socket>,
    crashed: CrashedSockets,
    sockets_made: u64,
    underway: Underway,
    /// Who is told when the lock is given back.
    told: Vec<Finished>,
    /// What crashed disks have left, dropped when the lock is given back.
    remains: Vec<Box<dyn Any + Send>>,
    woken: bool,
    /// Hosts whose drivers have said that somebody waits, and are woken when nobody does.
    pub(crate) asked: Vec<HostId>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let state = State {
            now: Duration::ZERO,
            random: Random::new(seed),
            hosts: Vec::new(),
            links: Links::default(),
            trace: Trace::new(),
            plan: None,
            is_over: false,
            sockets: BTreeMap::new(),
            crashed: CrashedSockets::default(),
            sockets_made: 0,
            underway: Underway::default(),
            told: Vec::new(),
            remains: Vec::new(),
            woken: false,
            asked: Vec::new(),
        };
        Arc::new(Self { state: Mutex::new(state), woken: Condvar::new(), start: Instant::now() })
    }

    /// When it began, on the machine's clock.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Does something, and tells those who waited for that.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = act(&mut state);
        let told = core::mem::take(&mut state.told);
        let remains = core::mem::take(&mut state.remains);
        let wakes = !state.asked.is_empty() && state.has_become_idle();
        drop(state);
        drop(told);
        for disk in remains {
            // What a destructor throws has been reported by the panic hook.
            let _ = Panic::catch(|| drop(disk));
        }
        if wakes {
            self.wake();
        }
        result
    }

    /// When something arrives next.
    pub(crate) fn next_arrival(&self) -> Option<Duration> {
        self.lock().underway.next()
    }

    /// Moves the time there, unless it is past, and delivers what arrives by then.
    pub(crate) fn jump(&self, to: Duration) {
        self.with(|state| {
            state.now = state.now.max(to);
            state.deliver_due();
        });
    }

    /// Jumps to `until` or to what arrives before. If there is neither, waits to be woken: by another thread, as nothing
    /// can happen by itself.
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether nobody waits any more on a host that has asked. It has heard of it then.
    fn has_become_idle(&mut self) -> bool {
        let (hosts, before) = (&self.hosts, self.asked.len());
        self.asked.retain(|host| hosts[host.0].in_flight > 0);
        self.asked.len() < before
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("now", &self.lock().now).finish_non_exhaustive()
    }
}
