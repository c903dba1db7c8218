//! Packets: what goes from host to host. Those of streams are sent again until they arrive, or nobody believes in it any
//! more; datagrams are sent once.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::ErrorKind;

use convoke_io::driver::Address;

use super::{HostId, SocketId, State};

/// How long the first wait is before something is sent again; each next one is twice as long.
const RESEND_AFTER: Duration = Duration::from_millis(200);
/// So often is something sent again before the connection has timed out: for about three minutes.
const RESENDS: u32 = 10;
/// The same for the first packets of a connection, as kernels do it: for about one minute.
const CONNECT_AFTER: Duration = Duration::from_secs(1);
const CONNECT_RESENDS: u32 = 6;

#[derive(Debug)]
pub(super) struct Sent {
    pub(super) from: HostId,
    to: HostId,
    packet: Packet,
    resends: u32,
    /// Its sender has crashed: it is not sent again.
    forsaken: bool,
}

#[derive(Debug)]
pub(super) enum Packet {
    /// To a listener: this stream wants to be connected.
    Connect { from: SocketId, to: Address },
    /// To a stream: you are connected, with this one.
    Connected { to: SocketId, with: SocketId },
    /// To a stream: nobody listens there.
    Refused { to: SocketId },
    /// From a stream to its other end: the bytes are with the sender until they have arrived.
    Segment { from: SocketId, number: u64 },
    /// To a stream: so many bytes were read at the other end, and there is room for more.
    Taken { to: SocketId, bytes: usize },
    /// To a stream: your other end is gone.
    Reset { to: SocketId },
    /// From a stream, to see whether its other end is there.
    Probe { from: SocketId },
    /// A host to itself: it is time for a probe.
    ProbeDue { from: SocketId },
    /// Nobody waits for an answer.
    Datagram { from: SocketAddr, to: SocketAddr, bytes: Vec<u8> },
}

impl Packet {
    /// After how long it is sent again, and how often.
    fn resends(&self) -> (Duration, u32) {
        match self {
            Self::Connect { .. } | Self::Connected { .. } => (CONNECT_AFTER, CONNECT_RESENDS),
            Self::Refused { .. } | Self::Segment { .. } | Self::Taken { .. } | Self::Probe { .. } => {
                (RESEND_AFTER, RESENDS)
            }
            Self::Reset { .. } | Self::ProbeDue { .. } | Self::Datagram { .. } => (Duration::ZERO, 0),
        }
    }
}

impl Sent {
    fn new(from: HostId, to: HostId, packet: Packet) -> Self {
        Self { from, to, packet, resends: 0, forsaken: false }
    }

    /// Its sender has crashed. Says whether it is on its way to another host all the same: what waits to be sent again is not.
    pub(super) fn forsake(&mut self) -> bool {
        match self.packet {
            // Who connects would ask again, and these are what he would hear.
            Packet::Connect { .. } | Packet::Connected { .. } | Packet::Refused { .. } => true,
            _ => {
                self.forsaken = true;
                self.resends == 0 && self.from != self.to
            }
        }
    }

    /// How long to wait before it is sent again; not at all, if that was tried too often.
    fn resend(&mut self) -> Option<Duration> {
        let (first, most) = self.packet.resends();
        let wait = first * 2_u32.pow(self.resends);
        self.resends += 1;
        (self.resends <= most).then_some(wait)
    }
}

impl State {
    /// Sends a packet. Inside of a host it arrives at once.
    pub(super) fn send(&mut self, from: HostId, to: HostId, packet: Packet) {
        if from == to {
            return self.arrive(Sent::new(from, to, packet));
        }
        let link = self.links.of(from, to);
        if let Packet::Datagram { from: sender, to: receiver, bytes } = &packet
            && self.random.chance(link.duplicates)
        {
            let again = Packet::Datagram { from: *sender, to: *receiver, bytes: bytes.clone() };
            self.send_with_luck(Sent::new(from, to, again), Duration::ZERO);
        }
        self.send_with_luck(Sent::new(from, to, packet), Duration::ZERO);
    }

    /// To oneself, after a while.
    pub(super) fn remind(&mut self, host: HostId, after: Duration, packet: Packet) {
        self.underway.add(self.now.saturating_add(after), Sent::new(host, host, packet));
    }

    /// Sends it after a while, and sees how long it takes: each loss on the way is another wait.
    fn send_with_luck(&mut self, mut sent: Sent, mut delay: Duration) {
        let link = self.links.of(sent.from, sent.to);
        while self.random.chance(link.loss) {
            let Some(wait) = sent.resend() else { return self.lost(&sent) };
            delay = delay.saturating_add(wait);
        }
        delay = delay.saturating_add(self.random.between(&link.latency));
        self.underway.add(self.now.saturating_add(delay), sent);
    }

    /// What has arrived by now.
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
        if sent.forsaken {
            return;
        }
        let is_first = sent.resends == 0;
        let Some(delay) = sent.resend() else { return self.lost(&sent) };
        if is_first {
            let (from, to) = (self.name(sent.from), self.name(sent.to));
            self.note(format!("{from} → {to}: a packet does not get through, and will be sent again"));
        }
        self.send_with_luck(sent, delay);
    }

    /// It will not arrive.
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
            // The one that it was for gets no answer any more.
            Packet::Refused { to: stream } | Packet::Taken { to: stream, .. } => {
                self.fail(stream, ErrorKind::TimedOut);
            }
            Packet::Reset { .. } | Packet::ProbeDue { .. } => {}
        }
    }

    fn arrive(&mut self, sent: Sent) {
        let Sent { from, to, packet, resends, forsaken } = sent;
        match packet {
            Packet::Connect { from: stream, to: address } => {
                if !self.connect_arrived(stream, from, to, &address) {
                    let packet = Packet::Connect { from: stream, to: address };
                    self.send_again(Sent { from, to, packet, resends, forsaken });
                }
            }
            Packet::Connected { to: stream, with } => self.connected(stream, with),
            Packet::Refused { to: stream } => self.fail(stream, ErrorKind::ConnectionRefused),
            Packet::Segment { from: stream, number } => self.segment_arrived(stream, number),
            Packet::Taken { to: stream, bytes } => self.taken(stream, bytes),
            Packet::Reset { to: stream } => self.fail(stream, ErrorKind::ConnectionReset),
            Packet::Probe { from: stream } => self.probe_arrived(stream),
            Packet::ProbeDue { from: stream } => self.probe(stream),
            Packet::Datagram { from, to: address, bytes } => self.datagram_arrived(to, from, address, bytes),
        }
    }
}
