//! Packets in transit, by arrival time.

use core::time::Duration;
use std::collections::BTreeMap;

use super::HostId;
use super::packet::Sent;

/// Packets in transit, earliest first; those with the same time in the order in which they were sent.
#[derive(Debug, Default)]
pub(crate) struct Underway {
    packets: BTreeMap<(Duration, u64), Sent>,
    sent: u64,
}

impl Underway {
    pub(crate) fn add(&mut self, at: Duration, packet: Sent) {
        self.packets.insert((at, self.sent), packet);
        self.sent += 1;
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.packets.first_key_value().map(|((at, _), _)| *at)
    }

    /// Handles the crash of a host. Packets in transit for the first time still arrive; packets that wait to
    /// be sent again are removed.
    pub(crate) fn abandon(&mut self, host: HostId) {
        self.packets.retain(|_, sent| sent.from != host || sent.abandon());
    }

    /// Takes the next packet, if it has arrived by `now`.
    pub(crate) fn take_due(&mut self, now: Duration) -> Option<Sent> {
        let first = self.packets.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}
