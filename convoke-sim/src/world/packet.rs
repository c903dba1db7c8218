//! Packets between hosts. Packets of streams are sent again until they arrive or time out; datagrams are sent
//! once.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::ErrorKind;

use convoke_io::driver::Address;

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
    pub(super) from: HostId,
    to: HostId,
    packet: Packet,
    resends: u32,
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
    Segment { from: SocketId, number: u64 },
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

impl Packet {
    /// Returns the first delay before it is sent again, and the maximum number of times.
    fn resends(&self) -> (Duration, u32) {
        match self {
            Self::Connect { .. } | Self::Connected { .. } => (CONNECT_AFTER, CONNECT_RESENDS),
            Self::Refused { .. } | Self::Segment { .. } | Self::WindowUpdate { .. } | Self::Probe { .. } => {
                (RESEND_AFTER, RESENDS)
            }
            Self::Reset { .. } | Self::ProbeDue { .. } | Self::Datagram { .. } => (Duration::ZERO, 0),
        }
    }
}

impl Sent {
    fn new(from: HostId, to: HostId, packet: Packet) -> Self {
        Self { from, to, packet, resends: 0, abandoned: false }
    }

    /// Marks it as not to be sent again, because its sender has crashed. Returns true if it is in transit to
    /// another host, and false if it was waiting to be sent again.
    pub(super) fn abandon(&mut self) -> bool {
        match self.packet {
            // A peer that connects would repeat its request, and these packets are its answers.
            Packet::Connect { .. } | Packet::Connected { .. } | Packet::Refused { .. } => true,
            _ => {
                self.abandoned = true;
                self.resends == 0 && self.from != self.to
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
    pub(super) fn send(&mut self, from: HostId, to: HostId, packet: Packet) {
        if from == to {
            return self.arrive(Sent::new(from, to, packet));
        }
        let link = self.links.of(from, to);
        if let Packet::Datagram { from: sender, to: receiver, bytes } = &packet
            && self.random.chance(link.duplicates)
        {
            let again = Packet::Datagram { from: *sender, to: *receiver, bytes: bytes.clone() };
            self.send_through_link(Sent::new(from, to, again), Duration::ZERO);
        }
        self.send_through_link(Sent::new(from, to, packet), Duration::ZERO);
    }

    /// Delivers a packet to its own host after a delay.
    pub(super) fn remind(&mut self, host: HostId, after: Duration, packet: Packet) {
        self.underway.add(self.now.saturating_add(after), Sent::new(host, host, packet));
    }

    /// Sends a packet after `delay`, through its link. Each loss adds another delay.
    fn send_through_link(&mut self, mut sent: Sent, mut delay: Duration) {
        let link = self.links.of(sent.from, sent.to);
        while self.random.chance(link.loss) {
            let Some(wait) = sent.resend() else { return self.lost(&sent) };
            delay = delay.saturating_add(wait);
        }
        delay = delay.saturating_add(self.random.between(&link.latency));
        self.underway.add(self.now.saturating_add(delay), sent);
    }

    /// Delivers the packets that have arrived by now.
    pub(crate) fn deliver_due(&mut self) {
        while let Some(sent) = self.underway.take_due(self.now) {
            if self.passes(sent.from, sent.to) {
                self.arrive(sent);
            } else {
                self.send_again(sent);
            }
        }
    }

    fn passes(&self, from: HostId, to: HostId) -> bool {
        self.hosts[to.0].up && !self.links.is_cut(from, to)
    }

    fn send_again(&mut self, mut sent: Sent) {
        if sent.abandoned {
            return;
        }
        let is_first = sent.resends == 0;
        let Some(delay) = sent.resend() else { return self.lost(&sent) };
        if is_first {
            let (from, to) = (self.name(sent.from), self.name(sent.to));
            self.note(format!("{from} → {to}: a packet does not get through, and will be sent again"));
        }
        self.send_through_link(sent, delay);
    }

    /// Handles a packet that will not arrive.
    fn lost(&mut self, sent: &Sent) {
        let (from, to) = (self.name(sent.from), self.name(sent.to));
        match sent.packet {
            Packet::Datagram { from: sender, to: receiver, .. } => {
                let (sender, receiver) = (sender.port(), receiver.port());
                self.note(format!("{from}:{sender} → {to}:{receiver}: a datagram is lost"));
            }
            Packet::Connect { from: stream, .. }
            | Packet::Segment { from: stream, .. }
            | Packet::Probe { from: stream } => self.fail(stream, ErrorKind::TimedOut),
            Packet::Connected { to: stream, with } => {
                self.fail(stream, ErrorKind::TimedOut);
                self.fail(with, ErrorKind::TimedOut);
            }
            // Its receiver gets no answer any more.
            Packet::Refused { to: stream } | Packet::WindowUpdate { to: stream, .. } => {
                self.fail(stream, ErrorKind::TimedOut);
            }
            Packet::Reset { .. } | Packet::ProbeDue { .. } => {}
        }
    }

    fn arrive(&mut self, sent: Sent) {
        let Sent { from, to, packet, resends, abandoned } = sent;
        match packet {
            Packet::Connect { from: stream, to: address } => {
                if !self.connect_arrived(stream, from, to, &address) {
                    let packet = Packet::Connect { from: stream, to: address };
                    self.send_again(Sent { from, to, packet, resends, abandoned });
                }
            }
            Packet::Connected { to: stream, with } => self.connected(stream, with),
            Packet::Refused { to: stream } => self.fail(stream, ErrorKind::ConnectionRefused),
            Packet::Segment { from: stream, number } => self.segment_arrived(stream, number),
            Packet::WindowUpdate { to: stream, bytes } => self.window_updated(stream, bytes),
            Packet::Reset { to: stream } => self.fail(stream, ErrorKind::ConnectionReset),
            Packet::Probe { from: stream } => self.probe_arrived(stream),
            Packet::ProbeDue { from: stream } => self.probe(stream),
            Packet::Datagram { from, to: address, bytes } => self.datagram_arrived(to, from, address, bytes),
        }
    }
}
