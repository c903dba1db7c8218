//! What lies between two hosts: how long packets take, how many are lost, and whether any get through at all.

use core::ops::Range;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use super::HostId;

/// The way from one host to another. Traffic inside of a host does not use it: that takes no time and loses nothing.
///
/// ```
/// use std::time::Duration;
/// use convoke::sim::Link;
///
/// let bad = Link::rough().latency(Duration::from_millis(100)..Duration::from_millis(900)).resets(0.0);
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
    /// A packet takes one to ten milliseconds, none is lost, and one read or write of ten is short. What hosts have unless
    /// something else is said.
    pub fn usual() -> Self {
        Self {
            latency: Duration::from_millis(1)..Duration::from_millis(10),
            loss: 0.0,
            duplicates: 0.0,
            resets: 0.0,
            short: 0.1,
        }
    }

    /// Each packet takes a millisecond, and nothing ever goes wrong.
    pub fn calm() -> Self {
        let millisecond = Duration::from_millis(1);
        Self { latency: millisecond..millisecond, short: 0.0, ..Self::usual() }
    }

    /// A packet takes up to 200 milliseconds, one of ten is lost, some come twice, and one write of a hundred ends in a reset.
    pub fn rough() -> Self {
        Self {
            latency: Duration::from_millis(1)..Duration::from_millis(200),
            loss: 0.1,
            duplicates: 0.05,
            resets: 0.01,
            short: 0.5,
        }
    }

    /// How long a packet takes: each another while. Datagrams overtake each other by it, and so do attempts to connect; what a
    /// stream carries stays in order.
    #[must_use]
    pub fn latency(mut self, latency: Range<Duration>) -> Self {
        self.latency = latency;
        self
    }

    /// How many of the packets are lost, from 0 to 1. A datagram that is lost is gone; what a stream carries is sent again
    /// later.
    #[must_use]
    pub fn loss(mut self, loss: f64) -> Self {
        self.loss = loss;
        self
    }

    /// How many of the datagrams arrive twice, from 0 to 1.
    #[must_use]
    pub fn duplicates(mut self, duplicates: f64) -> Self {
        self.duplicates = duplicates;
        self
    }

    /// At how many of the writes the connection is reset, from 0 to 1.
    #[must_use]
    pub fn resets(mut self, resets: f64) -> Self {
        self.resets = resets;
        self
    }

    /// How many reads and writes transfer less than they could, from 0 to 1, as every kernel's may. Also inside of a host.
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

/// Those of all hosts, each way by itself.
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
