//! `MulticastGroup`: a group of hosts that receive the same datagrams.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A multicast group, and the interface through which a socket belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MulticastGroup {
    /// A group of IPv4. The unspecified address lets the kernel choose the interface.
    V4 {
        /// The address of the group.
        group: Ipv4Addr,
        /// The address of the interface.
        interface: Ipv4Addr,
    },
    /// A group of IPv6. Zero lets the kernel choose the interface.
    V6 {
        /// The address of the group.
        group: Ipv6Addr,
        /// The index of the interface.
        interface: u32,
    },
}

impl MulticastGroup {
    /// Returns the address of the group.
    pub fn address(&self) -> IpAddr {
        match self {
            Self::V4 { group, .. } => (*group).into(),
            Self::V6 { group, .. } => (*group).into(),
        }
    }
}
