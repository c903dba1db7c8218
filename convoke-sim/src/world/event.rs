//! Events of a simulation as the trace stores them. A packet is recorded as a few numbers, because there are
//! many of them and few are read; the text is made when the trace is read.

use std::fmt;
use std::sync::Arc;

use super::HostId;

/// The kind of a trace line. It decides how long the line is kept, and whether a failure prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// Packets on the network, and notes of programs: frequent.
    Traffic,
    /// An action on a host, the end of a program, a connection that could not be made.
    Event,
    /// A connection that has broken, or a fault: a crash, a partition, an injected error.
    Break,
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Packet { way: Way, payload: Payload, fate: Fate },
    Text { kind: LineKind, text: Box<str> },
}

/// The way of a packet: the host and the port of its sender and of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    from: End,
    to: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    /// The index of the host: there are at most 65,535.
    host: u16,
    port: u16,
}

/// The contents of a packet, as a trace line tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Connect,
    Connected,
    Refused,
    Bytes(u32),
    EndOfStream,
    WindowUpdate(u32),
    Reset,
    Probe,
    Datagram(u32),
}

/// A stage in the life of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Sent,
    /// Sent for the n-th time, `n` greater than one.
    SentAgain(u32),
    /// The link delivers a second copy.
    Duplicated,
    Arrived,
    /// Arrived before an earlier packet of its stream, and waits for it.
    ArrivedEarly,
    Lost,
    MetPartition,
    MetHostThatIsDown,
    /// Arrived, but the connection is gone.
    MetNoConnection,
    /// Arrived, but no socket receives at the port.
    MetNoSocket,
    /// Arrived, but the backlog or the receive buffer is full.
    MetFullBuffer,
}

impl Way {
    pub(super) fn new(from: HostId, from_port: u16, to: HostId, to_port: u16) -> Self {
        let end = |host: HostId, port| End { host: host.0 as u16, port };
        Self { from: end(from, from_port), to: end(to, to_port) }
    }

    /// Returns the way from a host to itself.
    pub(super) fn inside(host: HostId) -> Self {
        Self::new(host, 0, host, 0)
    }

    /// Returns the way back.
    pub(super) fn back(self) -> Self {
        Self { from: self.to, to: self.from }
    }

    pub(super) fn from(self) -> HostId {
        HostId(self.from.host.into())
    }

    pub(super) fn to(self) -> HostId {
        HostId(self.to.host.into())
    }

    pub(super) fn is_inside(self) -> bool {
        self.from.host == self.to.host
    }

    fn word(self) -> u64 {
        let [a, b, c, d] = [self.from.host, self.from.port, self.to.host, self.to.port].map(u64::from);
        a << 48 | b << 32 | c << 16 | d
    }
}

impl Payload {
    fn word(self) -> u64 {
        let (tag, number) = match self {
            Self::Connect => (0, 0),
            Self::Connected => (1, 0),
            Self::Refused => (2, 0),
            Self::Bytes(bytes) => (3, bytes),
            Self::EndOfStream => (4, 0),
            Self::WindowUpdate(bytes) => (5, bytes),
            Self::Reset => (6, 0),
            Self::Probe => (7, 0),
            Self::Datagram(bytes) => (8, bytes),
        };
        tag << 32 | u64::from(number)
    }
}

impl Fate {
    fn word(self) -> u64 {
        let (tag, number) = match self {
            Self::Sent => (0, 0),
            Self::SentAgain(times) => (1, times),
            Self::Duplicated => (2, 0),
            Self::Arrived => (3, 0),
            Self::ArrivedEarly => (4, 0),
            Self::Lost => (5, 0),
            Self::MetPartition => (6, 0),
            Self::MetHostThatIsDown => (7, 0),
            Self::MetNoConnection => (8, 0),
            Self::MetNoSocket => (9, 0),
            Self::MetFullBuffer => (10, 0),
        };
        tag << 32 | u64::from(number)
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("connect"),
            Self::Connected => f.write_str("connected"),
            Self::Refused => f.write_str("refused"),
            Self::Bytes(bytes) => write!(f, "{bytes} bytes"),
            Self::EndOfStream => f.write_str("end of stream"),
            Self::WindowUpdate(bytes) => write!(f, "window opened by {bytes} bytes"),
            Self::Reset => f.write_str("reset"),
            Self::Probe => f.write_str("probe"),
            Self::Datagram(bytes) => write!(f, "a datagram of {bytes} bytes"),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent => Ok(()),
            Self::SentAgain(times) => write!(f, ": sent again (transmission {times})"),
            Self::Duplicated => f.write_str(": sent twice by the link"),
            Self::Arrived => f.write_str(": arrived"),
            Self::ArrivedEarly => f.write_str(": arrived early, and waits for what was sent before"),
            Self::Lost => f.write_str(": lost"),
            Self::MetPartition => f.write_str(": lost in the partition"),
            Self::MetHostThatIsDown => f.write_str(": lost, because the host is down"),
            Self::MetNoConnection => f.write_str(": dropped, because the connection is gone"),
            Self::MetNoSocket => f.write_str(": dropped, because no socket receives it"),
            Self::MetFullBuffer => f.write_str(": dropped, because the buffer is full"),
        }
    }
}

impl Event {
    pub(super) fn kind(&self) -> LineKind {
        match self {
            Self::Packet { .. } => LineKind::Traffic,
            Self::Text { kind, .. } => *kind,
        }
    }

    /// Returns the event as text.
    pub(super) fn text(&self, hosts: &[Arc<str>]) -> String {
        match self {
            Self::Packet { way: Way { from, to }, payload, fate } => {
                let name = |end: &End| &hosts[usize::from(end.host)];
                format!("{}:{} → {}:{}: {payload}{fate}", name(from), from.port, name(to), to.port)
            }
            Self::Text { text, .. } => text.to_string(),
        }
    }

    /// Calls `take` with numbers that differ between different events.
    pub(super) fn for_each_word(&self, mut take: impl FnMut(u64)) {
        match self {
            Self::Packet { way, payload, fate } => {
                take(way.word());
                take(payload.word());
                take(fate.word());
            }
            Self::Text { text, .. } => {
                take(text.len() as u64);
                for chunk in text.as_bytes().chunks(8) {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    take(u64::from_le_bytes(word));
                }
            }
        }
    }
}
