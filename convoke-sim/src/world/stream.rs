//! Streams: bytes in order, in both directions, with a receive window.
//!
//! Written bytes are stored at the sender, in segments, until the network has delivered them; then at the
//! receiver until they are read. The sender may write more when the receiver's window is open.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::Shutdown;

use convoke_io::driver::{Address, unsupported};

use super::packet::Packet;
use super::socket::{Holder, Kind, Socket};
use super::{HostId, SocketId, Taking, WorldState};

/// The maximum payload of a packet.
const SEGMENT: usize = 16 << 10;

/// The delay before a kernel probes a peer whose window is closed.
const WINDOW_PROBE_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) phase: Phase,
    pub(super) peer: Address,
    /// The other end, which may be gone, and its host.
    pub(super) other: Option<(SocketId, HostId)>,
    /// Segments that have not been delivered in order yet. The last one has the number `sent - 1`.
    segments: VecDeque<Segment>,
    sent: u64,
    /// Number of written bytes that the other end has not read, as far as this end knows.
    unread: usize,
    write_ended: bool,
    received: VecDeque<u8>,
    /// True if nothing will follow what was received.
    read_ended: bool,
    /// The error that the next call returns.
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
    /// Creates a stream that is not connected.
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Fresh,
            peer: Address::Unnamed,
            other: None,
            segments: VecDeque::new(),
            sent: 0,
            unread: 0,
            write_ended: false,
            received: VecDeque::new(),
            read_ended: false,
            error: None,
            probing: false,
        }
    }

    /// Creates a connected stream.
    pub(super) fn open(peer: Address, other: SocketId, host: HostId) -> Self {
        Self { phase: Phase::Open, peer, other: Some((other, host)), ..Self::new() }
    }

    /// Creates a stream with the same peer and nothing in transit; `None` if this one has nothing in transit.
    pub(super) fn without_what_is_underway(&self) -> Option<Self> {
        let (other, host) = self.other.filter(|_| !self.segments.is_empty() && self.phase == Phase::Open)?;
        Some(Self::open(self.peer.clone(), other, host))
    }

    /// Takes the error that ended the connection, if no call has returned it yet.
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

impl WorldState {
    pub(super) fn stream_mut(&mut self, id: SocketId) -> Option<&mut Stream> {
        self.sockets.get_mut(&id)?.as_stream()
    }

    fn stream_or_error(&mut self, id: SocketId) -> io::Result<&mut Stream> {
        self.socket(id)?.as_stream().ok_or_else(|| unsupported("bytes in this source"))
    }

    /// Reads available bytes, or peeks at them.
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
            self.send_window_update(id, count);
        }
        Ok(count)
    }

    /// Writes as many bytes as the window allows.
    pub(crate) fn write(&mut self, id: SocketId, bytes: &[u8]) -> io::Result<usize> {
        if let Kind::Datagrams(_) = self.socket(id)?.kind {
            return self.send_to(id, bytes, None);
        }
        let free = self.free_window(id);
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
        if free == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = self.shortened(id, free.min(bytes.len()).min(SEGMENT));
        self.send_segment(id, bytes[..count].into(), false);
        Ok(count)
    }

    /// Returns `most`, or sometimes a smaller number greater than zero.
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
        let free = self.free_window(id);
        self.stream_mut(id).is_none_or(|stream| {
            stream.error.is_some()
                || stream.write_ended
                || match stream.phase {
                    Phase::Open => free > 0,
                    Phase::Connecting => false,
                    Phase::Fresh | Phase::Broken => true,
                }
        })
    }

    /// Returns the number of bytes that the other end's window still accepts.
    fn free_window(&mut self, id: SocketId) -> usize {
        let Some(stream) = self.stream_mut(id) else { return 0 };
        let (other, unread) = (stream.other, stream.unread);
        let Some((other, host)) = other else { return 0 };
        let window = match self.sockets.get(&other) {
            Some(socket) => socket.options.receive_buffer,
            // This end does not know yet that the other one is gone.
            None => self.hosts[host.0].limits.window,
        };
        window.saturating_sub(unread)
    }

    fn send_segment(&mut self, id: SocketId, bytes: Vec<u8>, is_last: bool) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let host = socket.host;
        let Some(stream) = socket.as_stream() else { return };
        let Some((other, other_host)) = stream.other else { return };
        let number = stream.sent;
        let length = bytes.len();
        stream.sent += 1;
        stream.unread += length;
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

    /// Handles the arrival of a segment: delivers it and the later ones that arrived before it, in order.
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
            socket.holder == Holder::Network
                && socket.as_stream().is_some_and(|stream| stream.segments.is_empty())
        };
        if self.sockets.get_mut(&from).is_some_and(is_done) {
            self.forget(from);
        }
    }

    /// Delivers a segment to the other end.
    fn take_in(&mut self, from: SocketId, other: SocketId, segment: Segment) {
        if self.stream_mut(other).is_some_and(|stream| stream.phase == Phase::Connecting) {
            // It has overtaken the packet that confirms the connection.
            self.connected(other, from);
        }
        let held = self.sockets.get(&other).is_some_and(|socket| socket.holder != Holder::Network);
        let stream = self.stream_mut(other).filter(|stream| held && stream.phase == Phase::Open);
        let Some(stream) = stream else {
            if !segment.bytes.is_empty() {
                self.forget_orphan(other);
                self.reset_back(from);
            }
            return;
        };
        if stream.read_ended {
            self.send_window_update(other, segment.bytes.len());
        } else {
            stream.received.extend(&segment.bytes);
            stream.read_ended |= segment.is_last;
        }
        self.settle(other);
    }

    fn forget_orphan(&mut self, id: SocketId) {
        if self.sockets.get(&id).is_some_and(|socket| socket.holder == Holder::Network) {
            self.forget(id);
        }
    }

    /// Sends a reset to a stream whose other end is gone.
    pub(super) fn reset_back(&mut self, to: SocketId) {
        let Some(socket) = self.sockets.get_mut(&to) else { return };
        let host = socket.host;
        let other = socket.as_stream().and_then(|stream| stream.other);
        let from = other.map_or(host, |(_, host)| host);
        self.send(from, host, Packet::Reset { to });
    }

    /// Tells the other end that `bytes` of what it sent were read or dropped.
    fn send_window_update(&mut self, id: SocketId, bytes: usize) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let host = socket.host;
        if let Some((to, other_host)) = socket.as_stream().and_then(|stream| stream.other) {
            self.send(host, other_host, Packet::WindowUpdate { to, bytes });
        }
    }

    pub(super) fn window_updated(&mut self, id: SocketId, bytes: usize) {
        if let Some(stream) = self.stream_mut(id) {
            stream.unread = stream.unread.saturating_sub(bytes);
            self.settle(id);
        }
    }

    /// Ends the connection with an error. Bytes that have arrived can still be read.
    pub(super) fn fail(&mut self, id: SocketId, why: ErrorKind) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let (host, holder) = (socket.host, socket.holder);
        let Some(stream) = socket.as_stream().filter(|stream| stream.phase != Phase::Broken) else { return };
        stream.phase = Phase::Broken;
        stream.error = Some(why);
        stream.segments.clear();
        self.note(format!("{}: connection ends: {why}", self.way(host, id)));
        if holder == Holder::Network {
            self.forget(id);
        } else {
            self.settle(id);
        }
    }

    pub(crate) fn shut_down_stream(&mut self, id: SocketId, how: Shutdown) -> io::Result<()> {
        let stream = self.stream_or_error(id)?;
        match stream.phase {
            Phase::Fresh | Phase::Connecting => return Err(ErrorKind::NotConnected.into()),
            // The other end has closed the connection first.
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

    /// Closes a stream that its program has dropped. Written bytes are still delivered.
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

    /// Removes a stream at once and sends a reset to its other end.
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

    /// Schedules keep-alive probes, if the option is set.
    pub(super) fn keep_alive(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let (host, after) = (socket.host, socket.options.keep_alive);
        let (Some(after), Some(stream)) = (after, socket.as_stream()) else { return };
        if stream.phase == Phase::Open && !stream.probing {
            stream.probing = true;
            self.remind(host, after, Packet::ProbeDue { from: id });
        }
    }

    /// Schedules probes for streams to a crashed host: a kernel probes a peer whose window stays closed.
    pub(super) fn schedule_probes(&mut self, gone: HostId) {
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
            self.remind(host, WINDOW_PROBE_AFTER, Packet::ProbeDue { from: id });
        }
    }

    pub(super) fn probe(&mut self, id: SocketId) {
        let window_is_full = self.free_window(id) == 0;
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let (host, wanted) = (socket.host, socket.options.keep_alive.is_some() || window_is_full);
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
