//! Packets in transit, by arrival time.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;

use super::HostId;
use super::packet::Sent;

/// Packets in transit or waiting to be sent again, earliest first; those with the same time in the order in
/// which they were added.
#[derive(Debug, Default)]
pub(crate) struct Underway {
    /// The heap moves its items often, so they are small.
    due: BinaryHeap<Reverse<Due>>,
    packets: Vec<Option<Sent>>,
    /// Free places in `packets`.
    free: Vec<u32>,
    added: u64,
}

/// The time of a packet, the number of those that were added before, and its place: compared in this order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Duration,
    number: u64,
    place: u32,
}

impl Underway {
    pub(crate) fn add(&mut self, at: Duration, packet: Sent) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.packets.push(None);
            self.packets.len() as u32 - 1
        });
        self.packets[place as usize] = Some(packet);
        self.due.push(Reverse(Due { at, number: self.added, place }));
        self.added += 1;
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.due.peek().map(|Reverse(first)| first.at)
    }

    /// Handles the crash of a host. Packets in transit still arrive; packets that wait to be sent again are
    /// removed.
    pub(crate) fn abandon(&mut self, host: HostId) {
        self.due.retain(|Reverse(due)| {
            let packet = &mut self.packets[due.place as usize];
            let stays = packet.as_mut().is_some_and(|sent| sent.way.from() != host || sent.abandon());
            if !stays {
                *packet = None;
                self.free.push(due.place);
            }
            stays
        });
    }

    /// Takes the next packet, if it is due by `now`.
    pub(crate) fn take_due(&mut self, now: Duration) -> Option<Sent> {
        if self.next()? > now {
            return None;
        }
        let Reverse(Due { place, .. }) = self.due.pop()?;
        self.free.push(place);
        self.packets[place as usize].take()
    }
}
