//! The hosts: their names and addresses, what they have bound, and how much they may have.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use convoke_io::driver::Address;

use super::disks::Disks;
use super::socket::Kind;
use super::trace::LineKind;
use super::{SocketId, State};

/// Which host, in the order in which they were named first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub(crate) usize);

/// Ports that are handed out to whoever does not ask for one.
const EPHEMERAL: core::ops::Range<u16> = 49152..65535;

/// Each has an address of its own in 10.0.0.0/16, and one that ends in sixteen bits in fd00::/64.
const MOST_HOSTS: usize = u16::MAX as usize;

/// How much a host may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Open sockets.
    pub(crate) descriptors: usize,
    /// Bytes that a stream takes in before they are read.
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
    /// Whether it runs. One that has crashed does not answer.
    pub(crate) up: bool,
    /// Counts its lives: sockets and drivers of an earlier one are dead, see `graves.rs`.
    pub(crate) life: u64,
    pub(crate) open: usize,
    pub(crate) in_flight: usize,
    /// How many operations it has begun.
    pub(crate) operations: usize,
    pub(super) disks: Disks,
    next_port: u16,
    pub(super) bound: BTreeMap<(Transport, u16), Vec<SocketId>>,
    pub(super) paths: BTreeMap<PathBuf, SocketId>,
}

/// What a port is for: each kind has ports of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Streams,
    Datagrams,
}

impl Host {
    /// Its ports and paths are free.
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

    /// The address of its own that belongs to the family of this one.
    pub(super) fn address_like(self, other: IpAddr) -> IpAddr {
        match other {
            IpAddr::V4(_) => self.address().into(),
            IpAddr::V6(_) => self.address_v6().into(),
        }
    }
}

impl State {
    /// # Panics
    /// If there are so many that another one has no address.
    #[track_caller]
    pub(crate) fn add_host(&mut self, name: Arc<str>) -> HostId {
        assert!(self.hosts.len() < MOST_HOSTS, "a simulation has addresses for {MOST_HOSTS} hosts");
        self.hosts.push(Host {
            name,
            limits: Limits::default(),
            up: true,
            life: 0,
            open: 0,
            in_flight: 0,
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

    pub(crate) fn name(&self, host: HostId) -> &str {
        &self.hosts[host.0].name
    }

    pub(crate) fn note(&mut self, what: String) {
        self.trace.note(self.now, LineKind::Traffic, what);
    }

    /// The same for what was done to a host or to the network, or has become of a program.
    pub(crate) fn note_event(&mut self, what: String) {
        self.trace.note(self.now, LineKind::Event, what);
    }

    /// Where a stream of a host goes from and to, by names.
    pub(super) fn way(&self, host: HostId, id: SocketId) -> String {
        let socket = self.sockets.get(&id);
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

    /// Whose address it is, as this host sees it.
    pub(super) fn host_at(&self, seen_from: HostId, address: IpAddr) -> Option<HostId> {
        if address.is_loopback() || address.is_unspecified() {
            return Some(seen_from);
        }
        let found = (0..self.hosts.len()).map(HostId);
        found.into_iter().find(|host| address == host.address() || address == host.address_v6())
    }

    /// Fails if the host has no descriptor left.
    pub(super) fn descriptor(&self, host: HostId) -> io::Result<()> {
        let host = &self.hosts[host.0];
        if host.open < host.limits.descriptors { Ok(()) } else { Err(too_many_open()) }
    }

    /// Where a socket that wants to be here may be.
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
            let socket = &self.sockets[id];
            let both_share = shares && socket.shares_port;
            !both_share && socket.local.internet().is_some_and(|local| overlap(local.ip(), wanted.ip()))
        })
    }

    /// The sockets of a host that take what is sent to this address.
    pub(super) fn bound_to(&self, host: HostId, transport: Transport, to: SocketAddr) -> Vec<SocketId> {
        let there = self.hosts[host.0].bound.get(&(transport, to.port()));
        let takes = |id: &&SocketId| {
            self.sockets[id].local.internet().is_some_and(|local| overlap(local.ip(), to.ip()))
        };
        there.into_iter().flatten().filter(takes).copied().collect()
    }

    /// Sockets of a program that are still open.
    pub(crate) fn left_open(&self, host: HostId) -> Vec<String> {
        let open = self.sockets.values().filter(|socket| socket.host == host && socket.is_open());
        open.map(|socket| format!("{} {}", socket.kind.name(), socket.local)).collect()
    }
}

fn overlap(one: IpAddr, other: IpAddr) -> bool {
    one == other || one.is_unspecified() || other.is_unspecified()
}

/// What the kernel says when a process has no descriptor left.
fn too_many_open() -> io::Error {
    const EMFILE: i32 = if cfg!(windows) { 10024 } else { 24 };
    io::Error::from_raw_os_error(EMFILE)
}

#[cfg(test)]
mod tests {
    use super::super::World;
    use super::*;

    #[test]
    fn each_of_as_many_hosts_as_there_may_be_has_an_address_of_its_own() {
        const MOST: usize = if cfg!(miri) { 300 } else { MOST_HOSTS };
        World::new(1).with(|state| {
            let last = (0..MOST).map(|_| state.add_host("host".into())).last().expect("there are some");
            let addresses = [last.address().into(), last.address_v6().into()];
            assert!(addresses.into_iter().all(|address| state.host_at(HostId(0), address) == Some(last)));
            assert_ne!(last.address(), HostId(0).address());
            state.hosts.clear();
        });
    }

    #[test]
    #[should_panic(expected = "a simulation has addresses for 65535 hosts")]
    #[cfg_attr(miri, ignore = "makes 65,536 hosts")]
    fn one_more_has_none() {
        World::new(1).with(|state| (0..=MOST_HOSTS).for_each(|_| _ = state.add_host("host".into())));
    }
}
