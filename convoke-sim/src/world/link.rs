//! Links between hosts: latency, loss and partitions.

use core::ops::Range;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use super::HostId;

/// The path from one host to another. Traffic inside a host does not use it: it takes no time and loses
/// nothing.
///
/// ```
/// use std::time::Duration;
/// use convoke::sim::Link;
///
/// let latency = Duration::from_millis(100)..Duration::from_millis(900);
/// let bad = Link::rough().latency(latency).resets(0.0);
/// assert_ne!(bad, Link::calm());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    pub(crate) latency: Range<Duration>,
    pub(crate) loss: f64,
    pub(crate) duplicates: f64,
    pub(crate) resets: f64,
    pub(crate) short: f64,
}

impl Link {
    /// Returns the default link: a packet takes one to ten milliseconds, none is lost, and one in ten reads
    /// and writes is short. It varies all that a correct program must expect of a working network, and breaks
    /// no connection: a program needs to reconnect only if the test asks for it by
    /// [`Link::rough`], [`Link::resets`], [`Sim::reset`](crate::Sim::reset), a partition or a crash.
    pub fn usual() -> Self {
        Self {
            latency: Duration::from_millis(1)..Duration::from_millis(10),
            loss: 0.0,
            duplicates: 0.0,
            resets: 0.0,
            short: 0.1,
        }
    }

    /// Returns a link on which each packet takes a millisecond, and nothing goes wrong.
    pub fn calm() -> Self {
        let millisecond = Duration::from_millis(1);
        Self { latency: millisecond..millisecond, short: 0.0, ..Self::usual() }
    }

    /// Returns a link on which a packet takes up to 200 milliseconds, one in ten is lost, some arrive twice,
    /// and one in a hundred writes resets the connection.
    pub fn rough() -> Self {
        Self {
            latency: Duration::from_millis(1)..Duration::from_millis(200),
            loss: 0.1,
            duplicates: 0.05,
            resets: 0.01,
            short: 0.5,
        }
    }

    /// Sets the range of the latency. Each packet takes a random time in it, so datagrams and attempts to
    /// connect can overtake each other; the bytes of a stream stay in order.
    #[must_use]
    pub fn latency(mut self, latency: Range<Duration>) -> Self {
        self.latency = latency;
        self
    }

    /// Sets the share of packets that are lost, from 0 to 1. A lost datagram is gone; the packets of a stream
    /// are sent again later.
    #[must_use]
    pub fn loss(mut self, loss: f64) -> Self {
        self.loss = loss;
        self
    }

    /// Sets the share of datagrams that arrive twice, from 0 to 1.
    #[must_use]
    pub fn duplicates(mut self, duplicates: f64) -> Self {
        self.duplicates = duplicates;
        self
    }

    /// Sets the share of writes at which the connection is reset, from 0 to 1.
    #[must_use]
    pub fn resets(mut self, resets: f64) -> Self {
        self.resets = resets;
        self
    }

    /// Sets the share of reads and writes that transfer less than they could, from 0 to 1, as any kernel may
    /// do. It also applies inside a host.
    #[must_use]
    pub fn short(mut self, short: f64) -> Self {
        self.short = short;
        self
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::usual()
    }
}

/// The links between all hosts, one for each direction.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) usual: Link,
    special: BTreeMap<(HostId, HostId), Link>,
    cut: BTreeSet<(HostId, HostId)>,
}

impl Links {
    pub(crate) fn of(&self, from: HostId, to: HostId) -> &Link {
        self.special.get(&(from, to)).unwrap_or(&self.usual)
    }

    pub(crate) fn set(&mut self, from: HostId, to: HostId, link: Link) {
        self.special.insert((from, to), link);
    }

    pub(crate) fn cut(&mut self, from: HostId, to: HostId) {
        self.cut.insert((from, to));
    }

    pub(crate) fn mend(&mut self, from: HostId, to: HostId) {
        self.cut.remove(&(from, to));
    }

    pub(crate) fn mend_all(&mut self) {
        self.cut.clear();
    }

    pub(crate) fn is_cut(&self, from: HostId, to: HostId) -> bool {
        self.cut.contains(&(from, to))
    }
}
