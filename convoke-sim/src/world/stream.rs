//! Streams: bytes in order, in both directions, with a window that a slow reader fills.
//!
//! What is written lies with the sender, in segments, until the network has brought it to the other end; then with the receiver
//! until it is read. The sender has room for more when the other end's window has.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::Shutdown;

use convoke_io::driver::{Address, unsupported};

use super::packet::Packet;
use super::socket::{Holder, Kind, Socket};
use super::{HostId, SocketId, State, Taking};

/// The most that one packet carries.
const SEGMENT: usize = 16 << 10;

/// After so long a kernel asks a peer that has no room whether it is still there.
const ASK_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) phase: Phase,
    pub(super) peer: Address,
    /// The other end, which may be gone, and where it is.
    pub(super) other: Option<(SocketId, HostId)>,
    /// What has not arrived in order yet. The last one has the number `sent - 1`.
    segments: VecDeque<Segment>,
    sent: u64,
    /// How many bytes were written that the other end has not read, as far as is known here.
    untaken: usize,
    write_ended: bool,
    received: VecDeque<u8>,
    /// Nothing will come after what was received.
    read_ended: bool,
    /// What the next call says.
    error: Option<ErrorKind>,
    probing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Fresh,
    Connecting,
    Open,
    Broken,
}

#[derive(Debug)]
struct Segment {
    bytes: Vec<u8>,
    is_last: bool,
    arrived: bool,
}

impl Stream {
    /// One that is not connected.
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Fresh,
            peer: Address::Unnamed,
            other: None,
            segments: VecDeque::new(),
            sent: 0,
            untaken: 0,
            write_ended: false,
            received: VecDeque::new(),
            read_ended: false,
            error: None,
            probing: false,
        }
    }

    /// One that is.
    pub(super) fn open(peer: Address, other: SocketId, host: HostId) -> Self {
        Self { phase: Phase::Open, peer, other: Some((other, host)), ..Self::new() }
    }

    /// One with the same peer and nothing underway; none, if nothing is.
    pub(super) fn without_what_is_underway(&self) -> Option<Self> {
        let (other, host) = self.other.filter(|_| !self.segments.is_empty() && self.phase == Phase::Open)?;
        Some(Self::open(self.peer.clone(), other, host))
    }

    /// What has ended the connection, if that has not been said yet. It is said once.
    pub(super) fn take_error(&mut self) -> Option<ErrorKind> {
        self.error.take()
    }

    pub(super) fn is_readable(&self) -> bool {
        !self.received.is_empty()
            || self.read_ended
            || self.error.is_some()
            || matches!(self.phase, Phase::Broken | Phase::Fresh)
    }
}

impl State {
    pub(super) fn stream_mut(&mut self, id: SocketId) -> Option<&mut Stream> {
        self.sockets.get_mut(&id)?.as_stream()
    }

    fn stream_or_error(&mut self, id: SocketId) -> io::Result<&mut Stream> {
        self.socket(id)?.as_stream().ok_or_else(|| unsupported("bytes in this source"))
    }

    /// Reads what is there, or looks at it.
    pub(crate) fn read(&mut self, id: SocketId, buffer: &mut [u8], taking: Taking) -> io::Result<usize> {
        if let Kind::Datagrams(_) = self.socket(id)?.kind {
            return self.receive_from(id, buffer, taking).map(|(count, _)| count);
        }
        let stream = self.stream_or_error(id)?;
        if stream.received.is_empty() || buffer.is_empty() {
            return match stream.phase {
                _ if buffer.is_empty() => Ok(0),
                _ if let Some(error) = stream.error.take() => Err(error.into()),
                Phase::Fresh => Err(ErrorKind::NotConnected.into()),
                Phase::Broken => Ok(0),
                _ if stream.read_ended => Ok(0),
                Phase::Connecting | Phase::Open => Err(ErrorKind::WouldBlock.into()),
            };
        }
        let most = stream.received.len().min(buffer.len());
        let count = if taking == Taking::Peeks { most } else { self.shortened(id, most) };
        let stream = self.stream_or_error(id)?;
        let (front, back) = stream.received.as_slices();
        let in_front = front.len().min(count);
        buffer[..in_front].copy_from_slice(&front[..in_front]);
        buffer[in_front..count].copy_from_slice(&back[..count - in_front]);
        if taking == Taking::Takes {
            stream.received.drain(..count);
            self.say_taken(id, count);
        }
        Ok(count)
    }

    /// Writes what there is room for.
    pub(crate) fn write(&mut self, id: SocketId, bytes: &[u8]) -> io::Result<usize> {
        if let Kind::Datagrams(_) = self.socket(id)?.kind {
            return self.send_to(id, bytes, None);
        }
        let room = self.room(id);
        let stream = self.stream_or_error(id)?;
        if let Some(error) = stream.error.take() {
            return Err(error.into());
        }
        match stream.phase {
            Phase::Fresh => return Err(ErrorKind::NotConnected.into()),
            Phase::Connecting => return Err(ErrorKind::WouldBlock.into()),
            Phase::Open if !stream.write_ended => {}
            Phase::Open | Phase::Broken => return Err(ErrorKind::BrokenPipe.into()),
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        if room == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = self.shortened(id, room.min(bytes.len()).min(SEGMENT));
        self.send_segment(id, bytes[..count].into(), false);
        Ok(count)
    }

    /// As many as this, or, sometimes, fewer.
    fn shortened(&mut self, id: SocketId, most: usize) -> usize {
        let socket = &self.sockets[&id];
        let host = socket.host;
        let other = match &socket.kind {
            Kind::Stream(stream) => stream.other.map_or(host, |(_, host)| host),
            _ => host,
        };
        let short = self.links.of(host, other).short;
        if most > 1 && self.random.chance(short) { 1 + self.random.below(most - 1) } else { most }
    }

    pub(super) fn is_writable(&mut self, id: SocketId) -> bool {
        let room = self.room(id);
        self.stream_mut(id).is_none_or(|stream| {
            stream.error.is_some()
                || stream.write_ended
                || match stream.phase {
                    Phase::Open => room > 0,
                    Phase::Connecting => false,
                    Phase::Fresh | Phase::Broken => true,
                }
        })
    }

    /// How many more bytes the other end takes.
    fn room(&mut self, id: SocketId) -> usize {
        let Some(stream) = self.stream_mut(id) else { return 0 };
        let (other, untaken) = (stream.other, stream.untaken);
        let Some((other, host)) = other else { return 0 };
        let window = match self.sockets.get(&other) {
            Some(socket) => socket.options.receive_buffer,
            // It does not know yet that it is alone.
            None => self.hosts[host.0].limits.window,
        };
        window.saturating_sub(untaken)
    }

    fn send_segment(&mut self, id: SocketId, bytes: Vec<u8>, is_last: bool) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let host = socket.host;
        let Some(stream) = socket.as_stream() else { return };
        let Some((other, other_host)) = stream.other else { return };
        let number = stream.sent;
        let length = bytes.len();
        stream.sent += 1;
        stream.untaken += length;
        stream.write_ended |= is_last;
        stream.segments.push_back(Segment { bytes, is_last, arrived: false });
        if host != other_host {
            let what = if is_last { "end of stream".to_owned() } else { format!("{length} bytes") };
            self.note(format!("{}: {what}", self.way(host, id)));
            let resets = self.links.of(host, other_host).resets;
            if self.random.chance(resets) {
                self.fail(id, ErrorKind::ConnectionReset);
                return self.fail(other, ErrorKind::ConnectionReset);
            }
        }
        self.send(host, other_host, Packet::Segment { from: id, number });
    }

    /// One has arrived: it and those behind it that came earlier go to the other end.
    pub(super) fn segment_arrived(&mut self, from: SocketId, number: u64) {
        let Some(stream) = self.stream_mut(from) else { return };
        let Some((other, _)) = stream.other else { return };
        let first = stream.sent - stream.segments.len() as u64;
        let Some(arrived) =
            number.checked_sub(first).and_then(|index| stream.segments.get_mut(index as usize))
        else {
            return;
        };
        arrived.arrived = true;
        let in_order = stream.segments.iter().take_while(|segment| segment.arrived).count();
        let segments: Vec<Segment> = stream.segments.drain(..in_order).collect();
        for segment in segments {
            self.take_in(from, other, segment);
        }
        let is_done = |socket: &mut Socket| {
            socket.holder == Holder::Nobody
                && socket.as_stream().is_some_and(|stream| stream.segments.is_empty())
        };
        if self.sockets.get_mut(&from).is_some_and(is_done) {
            self.forget(from);
        }
    }

    /// What a segment brings is at the other end now.
    fn take_in(&mut self, from: SocketId, other: SocketId, segment: Segment) {
        if self.stream_mut(other).is_some_and(|stream| stream.phase == Phase::Connecting) {
            // It has overtaken the word that they are connected.
            self.connected(other, from);
        }
        let held = self.sockets.get(&other).is_some_and(|socket| socket.holder != Holder::Nobody);
        let stream = self.stream_mut(other).filter(|stream| held && stream.phase == Phase::Open);
        let Some(stream) = stream else {
            if !segment.bytes.is_empty() {
                self.forget_orphan(other);
                self.reset_back(from);
            }
            return;
        };
        if stream.read_ended {
            self.say_taken(other, segment.bytes.len());
        } else {
            stream.received.extend(&segment.bytes);
            stream.read_ended |= segment.is_last;
        }
        self.settle(other);
    }

    fn forget_orphan(&mut self, id: SocketId) {
        if self.sockets.get(&id).is_some_and(|socket| socket.holder == Holder::Nobody) {
            self.forget(id);
        }
    }

    /// Tells a stream that there is nobody at its other end.
    pub(super) fn reset_back(&mut self, to: SocketId) {
        let Some(socket) = self.sockets.get_mut(&to) else { return };
        let host = socket.host;
        let other = socket.as_stream().and_then(|stream| stream.other);
        let from = other.map_or(host, |(_, host)| host);
        self.send(from, host, Packet::Reset { to });
    }

    /// So many bytes of what the other end has sent do not lie here any more.
    fn say_taken(&mut self, id: SocketId, bytes: usize) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let host = socket.host;
        if let Some((to, other_host)) = socket.as_stream().and_then(|stream| stream.other) {
            self.send(host, other_host, Packet::Taken { to, bytes });
        }
    }

    pub(super) fn taken(&mut self, id: SocketId, bytes: usize) {
        if let Some(stream) = self.stream_mut(id) {
            stream.untaken = stream.untaken.saturating_sub(bytes);
            self.settle(id);
        }
    }

    /// The connection is over. What has arrived can still be read.
    pub(super) fn fail(&mut self, id: SocketId, why: ErrorKind) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let (host, holder) = (socket.host, socket.holder);
        let Some(stream) = socket.as_stream().filter(|stream| stream.phase != Phase::Broken) else { return };
        stream.phase = Phase::Broken;
        stream.error = Some(why);
        stream.segments.clear();
        self.note(format!("{}: connection ends: {why}", self.way(host, id)));
        if holder == Holder::Nobody {
            self.forget(id);
        } else {
            self.settle(id);
        }
    }

    pub(crate) fn shut_down_stream(&mut self, id: SocketId, how: Shutdown) -> io::Result<()> {
        let stream = self.stream_or_error(id)?;
        match stream.phase {
            Phase::Fresh | Phase::Connecting => return Err(ErrorKind::NotConnected.into()),
            // The other end was faster.
            Phase::Broken => return Ok(()),
            Phase::Open => {}
        }
        if how != Shutdown::Write {
            stream.read_ended = true;
        }
        if how != Shutdown::Read && !stream.write_ended {
            self.send_segment(id, Vec::new(), true);
        }
        self.settle(id);
        Ok(())
    }

    /// Nobody holds it any more. What was written is still delivered.
    pub(super) fn close_stream(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let resets = socket.options.linger.is_some_and(|linger| linger.is_zero());
        let Some(stream) = socket.as_stream() else { return };
        if stream.phase != Phase::Open {
            return self.forget(id);
        }
        if resets || !stream.received.is_empty() {
            return self.abort(id);
        }
        if !stream.write_ended {
            self.send_segment(id, Vec::new(), true);
        }
        if self.stream_mut(id).is_some_and(|stream| stream.segments.is_empty()) {
            self.forget(id);
        }
    }

    /// It is gone at once, and its other end hears of that.
    pub(super) fn abort(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let host = socket.host;
        let other = socket.as_stream().and_then(|stream| stream.other);
        self.forget(id);
        if let Some((to, other_host)) = other {
            self.send(host, other_host, Packet::Reset { to });
        }
    }

    pub(crate) fn peer_address(&mut self, id: SocketId) -> io::Result<Address> {
        match &self.socket(id)?.kind {
            Kind::Stream(stream) if stream.phase == Phase::Open => Ok(stream.peer.clone()),
            Kind::Datagrams(datagrams) => {
                datagrams.peer.clone().ok_or_else(|| ErrorKind::NotConnected.into())
            }
            _ => Err(ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn take_error(&mut self, id: SocketId) -> io::Result<Option<io::Error>> {
        Ok(self.stream_or_error(id)?.error.take().map(io::Error::from))
    }

    /// It is asked to see, every so often, whether its other end is there.
    pub(super) fn keep_alive(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let (host, after) = (socket.host, socket.options.keep_alive);
        let (Some(after), Some(stream)) = (after, socket.as_stream()) else { return };
        if stream.phase == Phase::Open && !stream.probing {
            stream.probing = true;
            self.remind(host, after, Packet::ProbeDue { from: id });
        }
    }

    /// A host is gone. Those who wait until it has read what they wrote will ask it one day, as kernels do; nobody else does.
    pub(super) fn ask_later(&mut self, gone: HostId) {
        let mut asking = Vec::new();
        for (id, socket) in &mut self.sockets {
            let host = socket.host;
            if let Some(stream) = socket.as_stream()
                && stream.other.is_some_and(|(_, other)| other == gone)
                && !core::mem::replace(&mut stream.probing, true)
            {
                asking.push((*id, host));
            }
        }
        for (id, host) in asking {
            self.remind(host, ASK_AFTER, Packet::ProbeDue { from: id });
        }
    }

    pub(super) fn probe(&mut self, id: SocketId) {
        let waits_for_room = self.room(id) == 0;
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let (host, wanted) = (socket.host, socket.options.keep_alive.is_some() || waits_for_room);
        let Some(stream) = socket.as_stream() else { return };
        stream.probing = false;
        if let Some((_, other_host)) = stream.other.filter(|_| wanted) {
            self.send(host, other_host, Packet::Probe { from: id });
            self.keep_alive(id);
        }
    }

    pub(super) fn probe_arrived(&mut self, from: SocketId) {
        let Some((other, _)) = self.stream_mut(from).and_then(|stream| stream.other) else { return };
        if self.stream_mut(other).is_none_or(|stream| stream.phase == Phase::Broken) {
            self.reset_back(from);
        }
    }
}
