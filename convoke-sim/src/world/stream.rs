//! Streams: bytes in order, in both directions, with a receive window.
//!
//! Written bytes are stored at the sender, in segments, until the network has delivered them; then at the
//! receiver until they are read. The sender may write more when the receiver's window is open.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::Shutdown;

use convoke_io::driver::{Address, Interest, unsupported};

use super::event::{Fate, Payload, Way};
use super::packet::{Packet, SentSegment};
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
    /// The way to the other end.
    pub(super) way: Way,
    /// The other end, which may be gone, and its host.
    pub(super) other: Option<(SocketId, HostId)>,
    /// Segments that have not been delivered in order yet. The last one has the number `sent - 1`.
    segments: VecDeque<Segment>,
    /// The bytes of `segments`.
    written: VecDeque<u8>,
    sent: u64,
    /// Number of written bytes that the other end has not read, as far as this end knows.
    unread: usize,
    write_ended: bool,
    received: VecDeque<u8>,
    /// Number of bytes that were read and that the other end was not told of.
    read: usize,
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
    length: usize,
    is_last: bool,
    arrived: bool,
}

impl Stream {
    /// Creates a stream that is not connected.
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Fresh,
            peer: Address::Unnamed,
            way: Way::inside(HostId(0)),
            other: None,
            segments: VecDeque::new(),
            written: VecDeque::new(),
            sent: 0,
            unread: 0,
            write_ended: false,
            received: VecDeque::new(),
            read: 0,
            read_ended: false,
            error: None,
            probing: false,
        }
    }

    /// Creates a connected stream. `way` leads to its other end.
    pub(super) fn open(peer: Address, other: SocketId, way: Way) -> Self {
        Self { phase: Phase::Open, peer, way, other: Some((other, way.to())), ..Self::new() }
    }

    /// Creates a stream with the same peer and nothing in transit; `None` if this one has nothing in transit.
    pub(super) fn without_what_is_underway(&self) -> Option<Self> {
        let (other, _) = self.other.filter(|_| !self.segments.is_empty() && self.phase == Phase::Open)?;
        Some(Self::open(self.peer.clone(), other, self.way))
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

    /// Receives the first `count` bytes of `from`, and removes them there.
    fn take_bytes(&mut self, from: &mut VecDeque<u8>, count: usize) {
        if self.received.is_empty() && from.len() == count {
            return core::mem::swap(&mut self.received, from);
        }
        let (front, back) = from.as_slices();
        let in_front = front.len().min(count);
        self.received.extend(&front[..in_front]);
        self.received.extend(&back[..count - in_front]);
        from.drain(..count);
    }
}

impl WorldState {
    pub(super) fn stream_mut(&mut self, id: SocketId) -> Option<&mut Stream> {
        self.sockets.get_mut(id)?.as_stream()
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
            if count == stream.received.len() {
                stream.received.clear();
            } else {
                stream.received.drain(..count);
            }
            stream.read += count;
            self.open_window(id);
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
        self.send_segment(id, &bytes[..count], false);
        Ok(count)
    }

    /// Returns `most`, or sometimes a smaller number greater than zero.
    fn shortened(&mut self, id: SocketId, most: usize) -> usize {
        let socket = &self.sockets[id];
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
        let window = match self.sockets.get(other) {
            Some(socket) => socket.options.receive_buffer,
            // This end does not know yet that the other one is gone.
            None => self.hosts[host.0].limits.window,
        };
        window.saturating_sub(unread)
    }

    fn send_segment(&mut self, id: SocketId, bytes: &[u8], is_last: bool) {
        let Some(stream) = self.stream_mut(id) else { return };
        let Some((other, _)) = stream.other else { return };
        let (number, way, length) = (stream.sent, stream.way, bytes.len());
        stream.sent += 1;
        stream.unread += length;
        stream.write_ended |= is_last;
        stream.segments.push_back(Segment { length, is_last, arrived: false });
        stream.written.extend(bytes);
        let read = core::mem::take(&mut stream.read);
        let payload = if is_last { Payload::EndOfStream } else { Payload::Bytes(length as u32) };
        if !way.is_inside() {
            let resets = self.links.of(way.from(), way.to()).resets;
            if self.random.chance(resets) {
                self.note_packet(way, payload, Fate::Sent);
                self.note_break(format!("{}: the link resets the connection", self.ends(way.from(), id)));
                self.fail(id, ErrorKind::ConnectionReset);
                return self.fail(other, ErrorKind::ConnectionReset);
            }
        }
        self.send(way, Packet::Segment(SentSegment { from: id, number, payload, read }));
    }

    /// Handles the arrival of a segment: delivers it and the later ones that arrived before it, in order.
    pub(super) fn segment_arrived(&mut self, way: Way, sent: SentSegment) {
        let SentSegment { from, number, payload, read } = sent;
        let gone = |state: &mut Self| state.note_packet(way, payload, Fate::MetNoConnection);
        let Some(stream) = self.stream_mut(from) else { return gone(self) };
        let Some((other, _)) = stream.other else { return gone(self) };
        let first = stream.sent - stream.segments.len() as u64;
        let Some(arrived) =
            number.checked_sub(first).and_then(|index| stream.segments.get_mut(index as usize))
        else {
            return gone(self);
        };
        arrived.arrived = true;
        self.note_packet(way, payload, if number == first { Fate::Arrived } else { Fate::ArrivedEarly });
        self.window_updated(other, read);
        while let Some(stream) = self.stream_mut(from)
            && stream.segments.front().is_some_and(|segment| segment.arrived)
            && let Some(segment) = stream.segments.pop_front()
        {
            let mut written = core::mem::take(&mut stream.written);
            self.take_in(from, other, &segment, &mut written);
            // The arrival may have broken the connection, and then the rest is not delivered.
            if let Some(stream) = self.stream_mut(from).filter(|stream| stream.phase == Phase::Open) {
                stream.written = written;
            }
        }
        let is_done = |socket: &mut Socket| {
            socket.holder == Holder::Network
                && socket.as_stream().is_some_and(|stream| stream.segments.is_empty())
        };
        if self.sockets.get_mut(from).is_some_and(is_done) {
            self.forget(from);
        }
    }

    /// Delivers a segment to the other end. Its bytes are the first ones of `written`, and are removed.
    fn take_in(&mut self, from: SocketId, other: SocketId, segment: &Segment, written: &mut VecDeque<u8>) {
        if self.stream_mut(other).is_some_and(|stream| stream.phase == Phase::Connecting) {
            // It has overtaken the packet that confirms the connection.
            self.connected(other, from);
        }
        let held = self.sockets.get(other).is_some_and(|socket| socket.holder != Holder::Network);
        let stream = self.stream_mut(other).filter(|stream| held && stream.phase == Phase::Open);
        let Some(stream) = stream else {
            written.drain(..segment.length);
            if segment.length > 0 {
                self.forget_orphan(other);
                self.reset_back(from);
            }
            return;
        };
        if stream.read_ended {
            written.drain(..segment.length);
            stream.read += segment.length;
            self.open_window(other);
        } else {
            stream.take_bytes(written, segment.length);
            stream.read_ended |= segment.is_last;
        }
        self.settle_direction(other, Interest::Read);
    }

    fn forget_orphan(&mut self, id: SocketId) {
        if self.sockets.get(id).is_some_and(|socket| socket.holder == Holder::Network) {
            self.forget(id);
        }
    }

    /// Sends a reset to a stream whose other end is gone.
    pub(super) fn reset_back(&mut self, to: SocketId) {
        if let Some(way) = self.stream_mut(to).map(|stream| stream.way) {
            self.send(way.back(), Packet::Reset { to });
        }
    }

    /// Tells the other end how many bytes were read, if they are half a window or more. Fewer bytes are told
    /// with the next segment, as in real kernels.
    pub(super) fn open_window(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let window = socket.options.receive_buffer;
        let Some(stream) = socket.as_stream() else { return };
        let Some((to, _)) = stream.other else { return };
        let (way, read) = (stream.way, stream.read);
        if read > 0 && (way.is_inside() || read >= window / 2) {
            stream.read = 0;
            self.send(way, Packet::WindowUpdate { to, bytes: read });
        }
    }

    pub(super) fn window_updated(&mut self, id: SocketId, bytes: usize) {
        if bytes > 0
            && let Some(stream) = self.stream_mut(id)
        {
            stream.unread = stream.unread.saturating_sub(bytes);
            self.settle_direction(id, Interest::Write);
        }
    }

    /// Ends the connection with an error. Bytes that have arrived can still be read.
    pub(super) fn fail(&mut self, id: SocketId, why: ErrorKind) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let (host, holder) = (socket.host, socket.holder);
        let Some(stream) = socket.as_stream().filter(|stream| stream.phase != Phase::Broken) else { return };
        let was_open = core::mem::replace(&mut stream.phase, Phase::Broken) == Phase::Open;
        stream.error = Some(why);
        stream.segments.clear();
        stream.written.clear();
        let ends = self.ends(host, id);
        if was_open {
            self.note_break(format!("{ends}: connection ends: {why}"));
        } else {
            self.note_event(format!("{ends}: cannot connect: {why}"));
        }
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
            self.send_segment(id, &[], true);
        }
        self.settle(id);
        Ok(())
    }

    /// Closes a stream that its program has dropped. Written bytes are still delivered.
    pub(super) fn close_stream(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let host = socket.host;
        let resets = socket.options.linger.is_some_and(|linger| linger.is_zero());
        let Some(stream) = socket.as_stream() else { return };
        if stream.phase != Phase::Open {
            return self.forget(id);
        }
        if resets || !stream.received.is_empty() {
            let why = if resets { "without lingering" } else { "before all bytes were read" };
            self.note_break(format!("{}: closed {why}, which resets the connection", self.ends(host, id)));
            return self.abort(id);
        }
        if !stream.write_ended {
            self.send_segment(id, &[], true);
        }
        if self.stream_mut(id).is_some_and(|stream| stream.segments.is_empty()) {
            self.forget(id);
        }
    }

    /// Removes a stream at once and sends a reset to its other end.
    pub(super) fn abort(&mut self, id: SocketId) {
        let Some(stream) = self.stream_mut(id) else { return };
        let (way, other) = (stream.way, stream.other);
        self.forget(id);
        if let Some((to, _)) = other {
            self.send(way, Packet::Reset { to });
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
        let Some(socket) = self.sockets.get_mut(id) else { return };
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
        for (id, socket) in self.sockets.iter_mut() {
            let host = socket.host;
            if let Some(stream) = socket.as_stream()
                && stream.other.is_some_and(|(_, other)| other == gone)
                && !core::mem::replace(&mut stream.probing, true)
            {
                asking.push((id, host));
            }
        }
        for (id, host) in asking {
            self.remind(host, WINDOW_PROBE_AFTER, Packet::ProbeDue { from: id });
        }
    }

    pub(super) fn probe(&mut self, id: SocketId) {
        let window_is_full = self.free_window(id) == 0;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let wanted = socket.options.keep_alive.is_some() || window_is_full;
        let Some(stream) = socket.as_stream() else { return };
        stream.probing = false;
        let way = stream.way;
        if stream.other.is_some() && wanted {
            self.send(way, Packet::Probe { from: id });
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
