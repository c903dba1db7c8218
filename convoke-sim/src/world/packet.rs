//! Packets between hosts. Packets of streams are sent again until they arrive or time out; datagrams are sent
//! once. Each transmission, loss and arrival is a line of the trace.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::ErrorKind;

use convoke_io::driver::Address;

use super::event::{Fate, Payload, Way};
use super::{HostId, SocketId, WorldState};

/// The delay before a packet is first sent again. Each next delay is twice as long.
const RESEND_AFTER: Duration = Duration::from_millis(200);
/// The number of times a packet is sent again before the connection times out: for about three minutes.
const RESENDS: u32 = 10;
/// The first delay for packets that connect, as in real kernels.
const CONNECT_AFTER: Duration = Duration::from_secs(1);
/// The number of times such a packet is sent again: for about one minute.
const CONNECT_RESENDS: u32 = 6;

#[derive(Debug)]
pub(super) struct Sent {
    pub(super) way: Way,
    packet: Packet,
    resends: u32,
    /// True if it did not arrive and waits to be sent again; false if it is in transit.
    waits: bool,
    /// True if its sender has crashed, so that it is not sent again.
    abandoned: bool,
}

#[derive(Debug)]
pub(super) enum Packet {
    /// To a listener: a stream wants to connect.
    Connect { from: SocketId, to: Address },
    /// To a stream: it is connected to `with`.
    Connected { to: SocketId, with: SocketId },
    /// To a stream: no socket listens at that address.
    Refused { to: SocketId },
    /// From a stream to its other end. The sender stores the bytes until they have arrived.
    Segment(SentSegment),
    /// To a stream: the other end has read this many bytes, so the window is open for more.
    WindowUpdate { to: SocketId, bytes: usize },
    /// To a stream: its other end is gone.
    Reset { to: SocketId },
    /// From a stream: a probe for its other end.
    Probe { from: SocketId },
    /// From a host to itself: a probe is due.
    ProbeDue { from: SocketId },
    /// A datagram, without acknowledgement.
    Datagram { from: SocketAddr, to: SocketAddr, bytes: Vec<u8> },
}

/// A segment of a stream on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentSegment {
    pub(super) from: SocketId,
    pub(super) number: u64,
    pub(super) payload: Payload,
    /// Number of bytes that the sender has read since it last told the receiver, as in a window update.
    pub(super) read: usize,
}

impl Packet {
    /// Returns the first delay before it is sent again, and the maximum number of times.
    fn resends(&self) -> (Duration, u32) {
        match self {
            Self::Connect { .. } | Self::Connected { .. } => (CONNECT_AFTER, CONNECT_RESENDS),
            Self::Refused { .. } | Self::Segment(_) | Self::WindowUpdate { .. } | Self::Probe { .. } => {
                (RESEND_AFTER, RESENDS)
            }
            Self::Reset { .. } | Self::ProbeDue { .. } | Self::Datagram { .. } => (Duration::ZERO, 0),
        }
    }

    fn payload(&self) -> Payload {
        match self {
            Self::Connect { .. } => Payload::Connect,
            Self::Connected { .. } => Payload::Connected,
            Self::Refused { .. } => Payload::Refused,
            Self::Segment(segment) => segment.payload,
            Self::WindowUpdate { bytes, .. } => Payload::WindowUpdate(*bytes as u32),
            Self::Reset { .. } => Payload::Reset,
            Self::Probe { .. } | Self::ProbeDue { .. } => Payload::Probe,
            Self::Datagram { bytes, .. } => Payload::Datagram(bytes.len() as u32),
        }
    }
}

impl Sent {
    fn new(way: Way, packet: Packet) -> Self {
        Self { way, packet, resends: 0, waits: false, abandoned: false }
    }

    /// Marks it as not to be sent again, because its sender has crashed. Returns true if it is in transit to
    /// another host, and false if it was waiting to be sent again.
    pub(super) fn abandon(&mut self) -> bool {
        match self.packet {
            // A peer that connects would repeat its request, and these packets are its answers.
            Packet::Connect { .. } | Packet::Connected { .. } | Packet::Refused { .. } => true,
            _ => {
                self.abandoned = true;
                !self.waits && !self.way.is_inside()
            }
        }
    }

    /// Returns the delay before it is sent again, or `None` if it was sent too often.
    fn resend(&mut self) -> Option<Duration> {
        let (first, most) = self.packet.resends();
        let wait = first * 2_u32.pow(self.resends);
        self.resends += 1;
        (self.resends <= most).then_some(wait)
    }
}

impl WorldState {
    /// Sends a packet. Inside a host it arrives at once.
    pub(super) fn send(&mut self, way: Way, packet: Packet) {
        let sent = Sent::new(way, packet);
        if way.is_inside() {
            return self.arrive(sent);
        }
        self.note_packet(way, sent.packet.payload(), Fate::Sent);
        if let Packet::Datagram { from, to, bytes } = &sent.packet
            && self.random.chance(self.links.of(way.from(), way.to()).duplicates)
        {
            let again = Packet::Datagram { from: *from, to: *to, bytes: bytes.clone() };
            self.note_packet(way, again.payload(), Fate::Duplicated);
            self.transmit(Sent::new(way, again));
        }
        self.transmit(sent);
    }

    /// Delivers a packet to its own host after a delay.
    pub(super) fn remind(&mut self, host: HostId, after: Duration, packet: Packet) {
        self.underway.add(self.now.saturating_add(after), Sent::new(Way::inside(host), packet));
    }

    /// Puts a packet on its link, which may lose it.
    fn transmit(&mut self, sent: Sent) {
        let link = self.links.of(sent.way.from(), sent.way.to());
        if self.random.chance(link.loss) {
            return self.send_again(sent, Fate::Lost);
        }
        let latency = self.random.between(&link.latency);
        self.underway.add(self.now.saturating_add(latency), sent);
    }

    /// Handles a packet that did not arrive: it is sent again after a delay, unless it was sent too often.
    fn send_again(&mut self, mut sent: Sent, fate: Fate) {
        self.note_packet(sent.way, sent.packet.payload(), fate);
        if sent.abandoned {
            return;
        }
        let Some(delay) = sent.resend() else { return self.give_up(&sent) };
        sent.waits = true;
        self.underway.add(self.now.saturating_add(delay), sent);
    }

    /// Returns the time of the next arrival or retransmission.
    pub(crate) fn next_arrival(&self) -> Option<Duration> {
        self.underway.next()
    }

    /// Delivers the packets that have arrived by now, and sends those again whose delay has passed.
    pub(crate) fn deliver_due(&mut self) {
        while let Some(mut sent) = self.underway.take_due(self.now) {
            let (from, to) = (sent.way.from(), sent.way.to());
            if sent.waits {
                sent.waits = false;
                self.note_packet(sent.way, sent.packet.payload(), Fate::SentAgain(sent.resends + 1));
                self.transmit(sent);
            } else if !self.hosts[to.0].up {
                self.send_again(sent, Fate::MetHostThatIsDown);
            } else if self.links.is_cut(from, to) {
                self.send_again(sent, Fate::MetPartition);
            } else {
                self.arrive(sent);
            }
        }
    }

    /// Handles a packet that will not arrive any more: its connection times out.
    fn give_up(&mut self, sent: &Sent) {
        match sent.packet {
            Packet::Connect { from: stream, .. }
            | Packet::Segment(SentSegment { from: stream, .. })
            | Packet::Probe { from: stream } => self.fail(stream, ErrorKind::TimedOut),
            Packet::Connected { to: stream, with } => {
                self.fail(stream, ErrorKind::TimedOut);
                self.fail(with, ErrorKind::TimedOut);
            }
            // Its receiver gets no answer any more.
            Packet::Refused { to: stream } | Packet::WindowUpdate { to: stream, .. } => {
                self.fail(stream, ErrorKind::TimedOut);
            }
            Packet::Reset { .. } | Packet::ProbeDue { .. } | Packet::Datagram { .. } => {}
        }
    }

    fn arrive(&mut self, sent: Sent) {
        let way = sent.way;
        match sent.packet {
            // A segment can be early, and a datagram or a request to connect can be dropped.
            Packet::Connect { .. } | Packet::Segment(_) | Packet::Datagram { .. } => {}
            _ => self.note_packet(way, sent.packet.payload(), Fate::Arrived),
        }
        match sent.packet {
            Packet::Connect { from: stream, ref to } => {
                if !self.connect_arrived(stream, way, to) {
                    self.send_again(sent, Fate::MetFullBuffer);
                }
            }
            Packet::Connected { to: stream, with } => self.connected(stream, with),
            Packet::Refused { to: stream } => self.fail(stream, ErrorKind::ConnectionRefused),
            Packet::Segment(segment) => self.segment_arrived(way, segment),
            Packet::WindowUpdate { to: stream, bytes } => self.window_updated(stream, bytes),
            Packet::Reset { to: stream } => self.fail(stream, ErrorKind::ConnectionReset),
            Packet::Probe { from: stream } => self.probe_arrived(stream),
            Packet::ProbeDue { from: stream } => self.probe(stream),
            Packet::Datagram { from, to, bytes } => self.datagram_arrived(way, from, to, bytes),
        }
    }
}
