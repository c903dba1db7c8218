//! How two streams connect: through a listener, or as a pair.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::io::{self, ErrorKind};

use convoke_io::driver::Address;

use super::event::{Fate, Payload, Way};
use super::hosts::Transport;
use super::packet::Packet;
use super::socket::{Holder, Kind};
use super::stream::{Phase, Stream};
use super::{HostId, SocketId, WorldState};

impl WorldState {
    /// Adds a stream that is not connected yet.
    pub(crate) fn new_stream(&mut self, host: HostId, run_number: u64) -> io::Result<SocketId> {
        if let Some(dead) = self.begin_to_open(host, run_number, "socket", &Address::Unnamed)? {
            return Ok(dead);
        }
        Ok(self.add(host, Address::Unnamed, Kind::Stream(Stream::new()), Holder::Program))
    }

    /// Adds two streams that are connected to each other.
    pub(crate) fn pair(&mut self, host: HostId, run_number: u64) -> io::Result<(SocketId, SocketId)> {
        let one = self.new_stream(host, run_number)?;
        if self.host(host).run_number != run_number {
            return Ok((one, self.new_stream(host, run_number)?));
        }
        if let Err(error) = self.descriptor(host) {
            self.close(one);
            return Err(error);
        }
        let kind = Kind::Stream(Stream::open(Address::Unnamed, one, Way::inside(host)));
        let other = self.add(host, Address::Unnamed, kind, Holder::Program);
        self.socket(one)?.kind = Kind::Stream(Stream::open(Address::Unnamed, other, Way::inside(host)));
        Ok((one, other))
    }

    /// Sets the local address of a stream that is not connected yet.
    pub(crate) fn bind_stream(&mut self, id: SocketId, at: &Address) -> io::Result<()> {
        let socket = self.socket(id)?;
        let host = socket.host;
        let is_fresh = socket.as_stream().is_some_and(|stream| stream.phase == Phase::Fresh);
        let Address::Internet(wanted) = at else { return Err(ErrorKind::InvalidInput.into()) };
        if !is_fresh || self.socket(id)?.local != Address::Unnamed {
            return Err(ErrorKind::InvalidInput.into());
        }
        let local = self.free_address(host, Transport::Streams, *wanted, false)?;
        self.socket(id)?.local = local.into();
        Ok(())
    }

    /// Starts to connect a stream, unless it has started already.
    pub(super) fn connect(&mut self, id: SocketId, to: &Address) -> io::Result<()> {
        let socket = self.socket(id)?;
        let host = socket.host;
        let Some(stream) = socket.as_stream() else {
            return Err(convoke_io::driver::unsupported("connection to make of this source"));
        };
        if stream.phase != Phase::Fresh {
            return Ok(());
        }
        let (way, local) = match to {
            Address::Internet(address) => {
                let there = self.host_at(host, address.ip()).ok_or(ErrorKind::HostUnreachable)?;
                let from = if there == host { loopback(*address) } else { host.address_like(address.ip()) };
                let local = match self.socket(id)?.local.internet() {
                    Some(bound) if bound.ip().is_unspecified() => SocketAddr::new(from, bound.port()),
                    Some(bound) => bound,
                    None => SocketAddr::new(from, self.next_port(host)),
                };
                (Way::new(host, local.port(), there, address.port()), Address::Internet(local))
            }
            Address::Path(path) if !self.host(host).paths.contains_key(path) => {
                return Err(ErrorKind::NotFound.into());
            }
            Address::Path(_) => (Way::inside(host), Address::Unnamed),
            _ => return Err(ErrorKind::InvalidInput.into()),
        };
        let socket = self.socket(id)?;
        socket.local = local;
        if let Some(stream) = socket.as_stream() {
            stream.phase = Phase::Connecting;
            stream.peer = to.clone();
            stream.way = way;
        }
        self.send(way, Packet::Connect { from: id, to: to.clone() });
        Ok(())
    }

    /// Returns the result of connecting.
    pub(super) fn connection(&mut self, id: SocketId) -> io::Result<usize> {
        let Some(stream) = self.socket(id)?.as_stream() else { return Err(ErrorKind::InvalidInput.into()) };
        match stream.phase {
            Phase::Open => Ok(0),
            Phase::Connecting => Err(ErrorKind::WouldBlock.into()),
            Phase::Fresh | Phase::Broken => {
                Err(stream.take_error().unwrap_or(ErrorKind::NotConnected).into())
            }
        }
    }

    /// Handles a connection request. Returns false if the backlog is full.
    pub(super) fn connect_arrived(&mut self, client: SocketId, way: Way, to: &Address) -> bool {
        let (host, back) = (way.to(), way.back());
        let waits = |stream: &mut Stream| stream.phase == Phase::Connecting;
        if !self.stream_mut(client).is_some_and(waits) {
            self.note_packet(way, Payload::Connect, Fate::MetNoConnection);
            return true;
        }
        let Some(id) = self.listener_at(host, to) else {
            self.note_packet(way, Payload::Connect, Fate::MetNoSocket);
            self.send(back, Packet::Refused { to: client });
            return true;
        };
        if !matches!(&self.sockets[id].kind, Kind::Listener(listener) if !listener.is_full()) {
            return false;
        }
        self.note_packet(way, Payload::Connect, Fate::Arrived);
        let peer = self.sockets[client].local.clone();
        let local = match to {
            Address::Internet(to) if to.ip().is_unspecified() => {
                SocketAddr::new(loopback(*to), to.port()).into()
            }
            other => other.clone(),
        };
        let stream = Kind::Stream(Stream::open(peer, client, back));
        let accepted = self.add(host, local, stream, Holder::Backlog);
        if let Some(Kind::Listener(listener)) = self.sockets.get_mut(id).map(|socket| &mut socket.kind) {
            listener.pending.push_back(accepted);
        }
        self.send(back, Packet::Connected { to: client, with: accepted });
        self.settle(id);
        true
    }

    /// Returns the socket that listens at `to`; the seed chooses if there are several.
    fn listener_at(&mut self, host: HostId, to: &Address) -> Option<SocketId> {
        match to {
            Address::Internet(to) => {
                let there = self.bound_to(host, Transport::Streams, *to);
                match there.len() {
                    0 => None,
                    1 => there.first().copied(),
                    several => Some(there[self.random.below(several)]),
                }
            }
            Address::Path(path) => {
                let found = self.hosts[host.0].paths.get(path).copied()?;
                matches!(self.sockets[found].kind, Kind::Listener(_)).then_some(found)
            }
            _ => None,
        }
    }

    /// Marks a stream as connected.
    pub(super) fn connected(&mut self, id: SocketId, with: SocketId) {
        let with_host = self.sockets.get(with).map(|socket| socket.host);
        let is_new = self.stream_mut(id).is_some_and(|stream| match stream.phase {
            Phase::Connecting => {
                stream.phase = Phase::Open;
                stream.other = with_host.map(|host| (with, host));
                true
            }
            Phase::Fresh | Phase::Open | Phase::Broken => false,
        });
        if is_new {
            if with_host.is_none() {
                return self.fail(id, ErrorKind::ConnectionReset);
            }
            self.settle(id);
            self.keep_alive(id);
        } else if self.stream_mut(id).is_none_or(|stream| stream.phase == Phase::Broken) {
            // The client has given up meanwhile.
            self.reset_back(with);
        }
    }
}

fn loopback(like: SocketAddr) -> IpAddr {
    match like.ip() {
        ip if ip.is_loopback() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}
