//! Datagram sockets: datagrams may be lost, duplicated and reordered.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeSet, VecDeque};
use std::io;

use convoke_io::driver::{Address, unsupported};

use super::event::{Fate, Payload, Way};
use super::hosts::Transport;
use super::packet::Packet;
use super::socket::{Kind, Socket};
use super::{HostId, SocketId, Taking, WorldState};

/// The largest payload of a UDP packet over IPv4.
const LONGEST: usize = 65_507;

#[derive(Debug, Default)]
pub(super) struct Datagrams {
    received: VecDeque<(Vec<u8>, Address)>,
    received_bytes: usize,
    pub(super) peer: Option<Address>,
    /// The multicast groups that it has joined.
    groups: BTreeSet<IpAddr>,
}

impl Datagrams {
    pub(super) fn is_empty(&self) -> bool {
        self.received.is_empty()
    }
}

impl WorldState {
    /// Receives a datagram, or peeks at it. Bytes that do not fit into `buffer` are lost.
    pub(crate) fn receive_from(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        taking: Taking,
    ) -> io::Result<(usize, Address)> {
        let datagrams = as_datagrams(self.socket(id)?)?;
        let Some((bytes, from)) = datagrams.received.front() else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        let from = from.clone();
        if taking == Taking::Takes
            && let Some((bytes, _)) = datagrams.received.pop_front()
        {
            datagrams.received_bytes -= bytes.len();
        }
        Ok((length, from))
    }

    /// Sends a datagram to `to`, or to the connected peer if there is none.
    pub(crate) fn send_to(&mut self, id: SocketId, bytes: &[u8], to: Option<&Address>) -> io::Result<usize> {
        let socket = self.socket(id)?;
        let (host, from) = (socket.host, socket.local.clone());
        let Some(to) = to.or(as_datagrams(socket)?.peer.as_ref()).cloned() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if bytes.len() > LONGEST {
            let message = format!("a datagram of {} bytes is longer than {LONGEST}", bytes.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        match (from, to) {
            (Address::Internet(from), Address::Internet(to)) if to.ip().is_multicast() => {
                self.send_to_group(id, host, from, to, bytes)?;
            }
            (Address::Internet(from), Address::Internet(to)) => {
                let there = self.host_at(host, to.ip()).ok_or(io::ErrorKind::HostUnreachable)?;
                // A socket bound to the unspecified address sends from the address that its peer can answer
                // to.
                let seen_as = match from.ip() {
                    ip if !ip.is_unspecified() => ip,
                    _ if there == host => to.ip(),
                    _ => host.address_like(to.ip()),
                };
                let from = SocketAddr::new(seen_as, from.port());
                let way = Way::new(host, from.port(), there, to.port());
                self.send(way, Packet::Datagram { from, to, bytes: bytes.into() });
            }
            (from, Address::Path(path)) => {
                let found = self.host(host).paths.get(&path).copied();
                let to = found.ok_or(io::ErrorKind::NotFound)?;
                self.put_datagram(to, Way::inside(host), bytes.into(), from);
            }
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
        Ok(bytes.len())
    }

    /// Sends a datagram to each host with a socket that has joined the group. It passes each link by itself.
    fn send_to_group(
        &mut self,
        id: SocketId,
        host: HostId,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &[u8],
    ) -> io::Result<()> {
        let loops = self.socket(id)?.options.multicast_loop;
        let ip = if from.ip().is_unspecified() { host.address_like(to.ip()) } else { from.ip() };
        let from = SocketAddr::new(ip, from.port());
        for there in (0..self.hosts.len()).map(HostId) {
            if (loops || there != host) && !self.members(there, to).is_empty() {
                let way = Way::new(host, from.port(), there, to.port());
                self.send(way, Packet::Datagram { from, to, bytes: bytes.into() });
            }
        }
        Ok(())
    }

    /// Returns the sockets of a host that receive what is sent to a group.
    fn members(&self, host: HostId, to: SocketAddr) -> Vec<SocketId> {
        let mut there = self.bound_to(host, Transport::Datagrams, to);
        there.retain(|id| match &self.sockets[*id].kind {
            Kind::Datagrams(datagrams) => datagrams.groups.contains(&to.ip()),
            Kind::Stream(_) | Kind::Listener(_) => false,
        });
        there
    }

    /// Joins or leaves a multicast group. A simulated host has one interface.
    pub(crate) fn set_membership(&mut self, id: SocketId, group: IpAddr, is_member: bool) -> io::Result<()> {
        if !group.is_multicast() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let groups = &mut as_datagrams(self.socket(id)?)?.groups;
        let is_changed = if is_member { groups.insert(group) } else { groups.remove(&group) };
        match (is_changed, is_member) {
            (true, _) => Ok(()),
            (false, true) => Err(io::ErrorKind::AddrInUse.into()),
            (false, false) => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    pub(crate) fn connect_datagrams(&mut self, id: SocketId, to: &Address) -> io::Result<()> {
        let socket = self.socket(id)?;
        let host = socket.host;
        as_datagrams(socket)?.peer = Some(to.clone());
        match to {
            Address::Path(path) if !self.host(host).paths.contains_key(path) => {
                Err(io::ErrorKind::NotFound.into())
            }
            _ => Ok(()),
        }
    }

    /// Handles a datagram that has arrived at a host.
    pub(super) fn datagram_arrived(&mut self, way: Way, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let host = way.to();
        if to.ip().is_multicast() {
            for member in self.members(host, to) {
                self.put_datagram(member, way, bytes.clone(), from.into());
            }
            return;
        }
        let there = self.bound_to(host, Transport::Datagrams, to);
        // If several sockets share the port, the seed chooses one.
        let chosen = match there.len() {
            0 => return self.note_packet(way, Payload::Datagram(bytes.len() as u32), Fate::MetNoSocket),
            1 => there[0],
            several => there[self.random.below(several)],
        };
        self.put_datagram(chosen, way, bytes, from.into());
    }

    fn put_datagram(&mut self, id: SocketId, way: Way, bytes: Vec<u8>, from: Address) {
        let payload = Payload::Datagram(bytes.len() as u32);
        let Ok(socket) = self.socket(id) else { return };
        let most = socket.options.receive_buffer;
        let Ok(datagrams) = as_datagrams(socket) else { return };
        let wanted = datagrams.peer.as_ref().is_none_or(|peer| *peer == from);
        if !wanted {
            return self.note_packet(way, payload, Fate::MetNoSocket);
        }
        if datagrams.received_bytes + bytes.len() > most {
            return self.note_packet(way, payload, Fate::MetFullBuffer);
        }
        datagrams.received_bytes += bytes.len();
        datagrams.received.push_back((bytes, from));
        self.note_packet(way, payload, Fate::Arrived);
        self.settle(id);
    }
}

fn as_datagrams(socket: &mut Socket) -> io::Result<&mut Datagrams> {
    match &mut socket.kind {
        Kind::Datagrams(datagrams) => Ok(datagrams),
        Kind::Stream(_) | Kind::Listener(_) => Err(unsupported("datagrams in this source")),
    }
}
