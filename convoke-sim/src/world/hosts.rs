//! Hosts: their names, addresses, bound sockets and limits.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use convoke_io::driver::Address;

use super::disks::Disks;
use super::notifications::Notifications;
use super::socket::Kind;
use super::{SocketId, World, WorldState};
use crate::clock::Clock;

/// The index of a host, in the order in which hosts were first named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub(crate) usize);

/// The ports for sockets that do not ask for one.
const EPHEMERAL: core::ops::Range<u16> = 49152..65535;

/// The maximum number of hosts: each has an address in 10.0.0.0/16, and one in fd00::/64 with sixteen
/// variable bits.
const MOST_HOSTS: usize = u16::MAX as usize;

/// The limits of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of open sockets.
    pub(crate) descriptors: usize,
    /// Maximum number of unread bytes of a stream.
    pub(crate) window: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { descriptors: 1 << 20, window: 64 << 10 }
    }
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: Arc<str>,
    pub(crate) limits: Limits,
    /// False if it has crashed or shut down; then it does not answer.
    pub(crate) up: bool,
    /// False after its program has ended: then its driver delivers no notifications.
    pub(super) runs: bool,
    /// The current run of the host. Sockets and drivers of an earlier run are dead: see `crashed.rs`.
    pub(crate) run_number: u64,
    pub(crate) open: usize,
    /// Number of parked operations, watchers and notifications that were not delivered.
    pub(crate) in_flight: usize,
    pub(super) notifications: Notifications,
    /// True if it is in the list of hosts with something to run.
    pub(super) is_ready: bool,
    /// The simulated time at which its next timer is due, if its loop is parked.
    pub(super) next_timer: Option<Duration>,
    pub(crate) clock: Clock,
    /// Number of operations that it has begun.
    pub(crate) operations: usize,
    pub(super) disks: Disks,
    next_port: u16,
    pub(super) bound: BTreeMap<(Transport, u16), Vec<SocketId>>,
    pub(super) paths: BTreeMap<PathBuf, SocketId>,
}

/// The transport of a port. Each has its own ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Streams,
    Datagrams,
}

impl Host {
    /// Frees its ports and paths.
    pub(super) fn forget_names(&mut self) {
        self.bound.clear();
        self.paths.clear();
    }
}

impl HostId {
    pub(crate) fn address(self) -> Ipv4Addr {
        let [.., high, low] = (self.0 as u32 + 1).to_be_bytes();
        Ipv4Addr::new(10, 0, high, low)
    }

    fn address_v6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, self.0 as u16 + 1)
    }

    /// Returns its address of the same family as `other`.
    pub(super) fn address_like(self, other: IpAddr) -> IpAddr {
        match other {
            IpAddr::V4(_) => self.address().into(),
            IpAddr::V6(_) => self.address_v6().into(),
        }
    }
}

impl WorldState {
    /// Adds a host.
    ///
    /// # Panics
    /// If there are no addresses left.
    #[track_caller]
    pub(crate) fn add_host(&mut self, name: Arc<str>) -> HostId {
        assert!(self.hosts.len() < MOST_HOSTS, "a simulation has addresses for {MOST_HOSTS} hosts");
        self.hosts.push(Host {
            name,
            limits: Limits::default(),
            up: true,
            runs: true,
            run_number: 0,
            open: 0,
            in_flight: 0,
            notifications: Notifications::default(),
            is_ready: false,
            next_timer: None,
            clock: Clock::default(),
            operations: 0,
            disks: Disks::default(),
            next_port: EPHEMERAL.start,
            bound: BTreeMap::new(),
            paths: BTreeMap::new(),
        });
        HostId(self.hosts.len() - 1)
    }

    pub(crate) fn find_host(&self, name: &str) -> Option<HostId> {
        self.hosts.iter().position(|host| *host.name == *name).map(HostId)
    }

    pub(crate) fn host(&mut self, host: HostId) -> &mut Host {
        &mut self.hosts[host.0]
    }

    pub(crate) fn clock_of(&self, host: HostId) -> Clock {
        self.hosts[host.0].clock
    }

    pub(crate) fn name(&self, host: HostId) -> &str {
        &self.hosts[host.0].name
    }

    /// Describes the two ends of a stream by host names.
    pub(super) fn ends(&self, host: HostId, id: SocketId) -> String {
        let socket = self.sockets.get(id);
        let local = socket.map_or(&Address::Unnamed, |socket| &socket.local);
        let peer = socket.map_or(&Address::Unnamed, |socket| match &socket.kind {
            Kind::Stream(stream) => &stream.peer,
            Kind::Listener(_) | Kind::Datagrams(_) => &Address::Unnamed,
        });
        format!("{} → {}", self.by_name(host, local), self.by_name(host, peer))
    }

    fn by_name(&self, host: HostId, address: &Address) -> String {
        match address {
            Address::Internet(internet) => match self.host_at(host, internet.ip()) {
                Some(there) => format!("{}:{}", self.name(there), internet.port()),
                None => address.to_string(),
            },
            other => format!("{}:{other}", self.name(host)),
        }
    }

    /// Returns the host with this address, as seen from a host.
    pub(super) fn host_at(&self, seen_from: HostId, address: IpAddr) -> Option<HostId> {
        if address.is_loopback() || address.is_unspecified() {
            return Some(seen_from);
        }
        let index = match address {
            IpAddr::V4(address) => u32::from(address).wrapping_sub(HostId(0).address().into()) as usize,
            IpAddr::V6(address) => usize::from(address.segments()[7]).wrapping_sub(1),
        };
        let host = HostId(index);
        (index < self.hosts.len() && host.address_like(address) == address).then_some(host)
    }

    /// Fails if the host has no descriptor left.
    pub(super) fn descriptor(&self, host: HostId) -> io::Result<()> {
        let host = &self.hosts[host.0];
        if host.open < host.limits.descriptors { Ok(()) } else { Err(too_many_open()) }
    }

    /// Returns the address for a socket that asks for `wanted`, with a free port if it asks for port 0.
    pub(super) fn free_address(
        &mut self,
        host: HostId,
        transport: Transport,
        wanted: SocketAddr,
        shares: bool,
    ) -> io::Result<SocketAddr> {
        let ip = wanted.ip();
        if !(ip.is_unspecified() || self.host_at(host, ip) == Some(host)) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        if wanted.port() != 0 {
            let taken = self.is_taken(host, transport, wanted, shares);
            return if taken { Err(io::ErrorKind::AddrInUse.into()) } else { Ok(wanted) };
        }
        for _ in EPHEMERAL {
            let address = SocketAddr::new(ip, self.next_port(host));
            if !self.is_taken(host, transport, address, false) {
                return Ok(address);
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    pub(super) fn next_port(&mut self, host: HostId) -> u16 {
        let host = self.host(host);
        let port = host.next_port;
        host.next_port = if port + 1 == EPHEMERAL.end { EPHEMERAL.start } else { port + 1 };
        port
    }

    fn is_taken(&self, host: HostId, transport: Transport, wanted: SocketAddr, shares: bool) -> bool {
        let there = self.hosts[host.0].bound.get(&(transport, wanted.port()));
        there.into_iter().flatten().any(|id| {
            let socket = &self.sockets[*id];
            let both_share = shares && socket.shares_port;
            !both_share && socket.local.internet().is_some_and(|local| overlap(local.ip(), wanted.ip()))
        })
    }

    /// Returns the sockets of a host that receive what is sent to `to`.
    pub(super) fn bound_to(&self, host: HostId, transport: Transport, to: SocketAddr) -> Vec<SocketId> {
        let there = self.hosts[host.0].bound.get(&(transport, to.port()));
        let takes = |id: &&SocketId| {
            self.sockets[**id].local.internet().is_some_and(|local| overlap(local.ip(), to.ip()))
        };
        there.into_iter().flatten().filter(takes).copied().collect()
    }

    /// Lists the sockets of a program that are still open.
    pub(crate) fn left_open(&self, host: HostId) -> Vec<String> {
        let open = self
            .sockets
            .iter()
            .map(|(_, socket)| socket)
            .filter(|socket| socket.host == host && socket.is_open());
        open.map(|socket| format!("{} {}", socket.kind.name(), socket.local)).collect()
    }
}

/// Adds `count` hosts to a new world. Returns all addresses, each with the index of its host and of the host that is
/// found by it.
///
/// # Panics
/// If there are not that many addresses.
pub fn addresses_of_hosts(count: usize) -> Vec<(IpAddr, usize, Option<usize>)> {
    World::new(1).with(|state| {
        let hosts: Vec<_> = (0..count).map(|_| state.add_host("host".into())).collect();
        let addresses = hosts.iter().flat_map(|host| {
            let addresses: [IpAddr; 2] = [host.address().into(), host.address_v6().into()];
            addresses.map(|address| (address, host.0, state.host_at(HostId(0), address).map(|found| found.0)))
        });
        let addresses = addresses.collect();
        state.hosts.clear();
        addresses
    })
}

fn overlap(one: IpAddr, other: IpAddr) -> bool {
    one == other || one.is_unspecified() || other.is_unspecified()
}

/// Returns the error of the kernel for a process without a free descriptor.
fn too_many_open() -> io::Error {
    const EMFILE: i32 = if cfg!(windows) { 10024 } else { 24 };
    io::Error::from_raw_os_error(EMFILE)
}
