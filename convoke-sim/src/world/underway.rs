//! What is underway, by when it arrives.

use core::time::Duration;
use std::collections::BTreeMap;

use super::HostId;
use super::packet::Sent;

/// Earliest first; those of the same time in the order in which they were sent.
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

    /// A host is gone. What it has sent for the first time is on its way; the rest waits to be sent again, which nobody does.
    pub(crate) fn forsake(&mut self, host: HostId) {
        self.packets.retain(|_, sent| sent.from != host || sent.forsake());
    }

    /// The next, if it has arrived by then.
    pub(crate) fn take_due(&mut self, now: Duration) -> Option<Sent> {
        let first = self.packets.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}
