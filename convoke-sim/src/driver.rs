//! The driver of a host: the kernel that its program sees. It passes every call to the world.

use core::net::IpAddr;
use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use convoke_io::driver::{Address, Driver, ListenOptions, Source};
use convoke_net::signal::SignalHub;

use crate::source::SimSource;
use crate::world::{HostId, Link, SocketId, Transport, World};

/// The driver of one host of a simulation, during one run of that host.
///
/// Programs on a [`Sim`](crate::Sim) get one automatically. Alone it is an ordinary driver with virtual time
/// and without a network beyond its own host. If no timer and no packet is pending, `wait` blocks until
/// another thread wakes it.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use convoke::driver::IoContext;
/// use convoke::prelude::*;
/// use convoke::sim::SimDriver;
///
/// let context = IoContext::new(Arc::new(SimDriver::alone(1)));
/// // A year of virtual time passes at once.
/// let year = Duration::from_secs(365 * 86400);
/// let outcome = context.block_on(async move { sleep(year).await });
/// assert_eq!(outcome, Outcome::Value(()));
/// ```
#[derive(Debug)]
pub struct SimDriver {
    world: Arc<World>,
    host: HostId,
    run_number: u64,
    signals: Arc<SignalHub>,
}

impl SimDriver {
    /// Creates the driver of a host that is alone in its world.
    pub fn alone(seed: u64) -> Self {
        let world = World::new(seed);
        let host = world.with(|state| state.add_host("host".into()));
        Self::new(world, host, 0, Arc::default())
    }

    /// Sets the share of reads and writes, from 0 to 1, that transfer less than they could: see
    /// [`Link::short`].
    #[must_use]
    pub fn short(self, short: f64) -> Self {
        self.world.with(|state| state.links.usual = Link { short, ..Link::usual() });
        self
    }

    /// Sets the maximum number of open sockets.
    #[must_use]
    pub fn descriptors(self, most: usize) -> Self {
        self.world.with(|state| state.host(self.host).limits.descriptors = most);
        self
    }

    pub(crate) fn new(world: Arc<World>, host: HostId, run_number: u64, signals: Arc<SignalHub>) -> Self {
        Self { world, host, run_number, signals }
    }

    fn source(&self, id: SocketId) -> Arc<dyn Source> {
        Arc::new(SimSource::new(self.world.clone(), self.host, id))
    }

    fn bind(&self, at: &Address, options: &ListenOptions, of: Transport) -> io::Result<Arc<dyn Source>> {
        let bound = self.world.with(|state| state.bind(self.host, self.run_number, at, options, of));
        bound.map(|id| self.source(id))
    }
}

impl Driver for SimDriver {
    fn now(&self) -> Instant {
        let start = self.world.start();
        self.world.with(|state| state.clock_of(self.host).shows(start, state.now))
    }

    fn time_of_day(&self) -> SystemTime {
        self.world.with(|state| state.clock_of(self.host).time_of_day(state.now))
    }

    fn listen(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        self.bind(at, options, Transport::Streams)
    }

    fn stream(&self, _like: &Address) -> io::Result<Arc<dyn Source>> {
        self.world.with(|state| state.new_stream(self.host, self.run_number)).map(|id| self.source(id))
    }

    fn datagrams(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        self.bind(at, options, Transport::Datagrams)
    }

    fn pair(&self) -> io::Result<(Arc<dyn Source>, Arc<dyn Source>)> {
        let (one, other) = self.world.with(|state| state.pair(self.host, self.run_number))?;
        Ok((self.source(one), self.source(other)))
    }

    fn lookup(&self, host: &str) -> Option<io::Result<Vec<IpAddr>>> {
        if host == "localhost" {
            return Some(Ok(vec![IpAddr::from([127, 0, 0, 1])]));
        }
        let found = self.world.with(|state| state.find_host(host));
        Some(match found {
            Some(found) => Ok(vec![found.address().into()]),
            None => {
                let message = format!("there is no host `{host}` in this simulation");
                Err(io::Error::new(io::ErrorKind::NotFound, message))
            }
        })
    }

    fn signals(&self) -> Option<Arc<SignalHub>> {
        Some(self.signals.clone())
    }

    fn wait(&self, until: Option<Instant>) -> io::Result<()> {
        let start = self.world.start();
        let until = until.map(|until| {
            let clock = self.world.with(|state| state.clock_of(self.host));
            clock.passed_when(start, until)
        });
        self.world.wait(self.host, until);
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        self.world.check(self.host);
        Ok(())
    }

    fn wake(&self) {
        self.world.wake(self.host);
    }

    fn in_flight(&self) -> usize {
        // A context that is told that nothing is in flight does not check again: so nothing may be left to
        // deliver.
        drop(self.world.with(|state| state.take_notifications(self.host)));
        self.world.with(|state| {
            let in_flight = state.host(self.host).in_flight;
            if in_flight > 0 && !state.waiting_for_idle.contains(&self.host) {
                state.waiting_for_idle.push(self.host);
            }
            in_flight
        })
    }

    fn shut_down(&self) {
        self.world.with(|state| state.close_host(self.host));
    }

    fn jumps(&self) -> bool {
        true
    }

    fn runs_per_check(&self) -> u32 {
        1
    }

    fn choose(&self, queued: usize) -> usize {
        self.world.with(|state| state.choose(queued))
    }
}
