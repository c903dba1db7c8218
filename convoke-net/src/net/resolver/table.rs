//! `HostTable`: names without a name server.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;
use std::io;

use super::{LookUp, Names, SystemNames};

/// Hosts and their addresses, for tests and private names. Use it with [`install`](super::install).
///
/// ```
/// use convoke::net::resolver::{HostTable, Names};
/// use convoke::prelude::*;
///
/// let hosts = HostTable::new()
///     .with("one", [10, 0, 0, 1])
///     .with("two", [10, 0, 0, 2])
///     .with("two", [10, 0, 1, 2]);
/// block_on(async move {
///     assert_eq!(hosts.look_up("two").await.unwrap().len(), 2);
///     assert!(hosts.look_up("three").await.is_err());
/// })
/// .unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct HostTable {
    hosts: BTreeMap<String, Vec<SocketAddr>>,
    system: bool,
}

impl HostTable {
    /// Creates an empty table. Hosts that are not in it are not found.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a host, or another address of it.
    #[must_use]
    pub fn with(mut self, host: impl Into<String>, address: impl Into<IpAddr>) -> Self {
        self.hosts.entry(host.into()).or_default().push(SocketAddr::new(address.into(), 0));
        self
    }

    /// Asks the system for hosts that are not in the table.
    #[must_use]
    pub fn or_system(mut self) -> Self {
        self.system = true;
        self
    }
}

impl Names for HostTable {
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
        match self.hosts.get(host) {
            None if self.system => SystemNames.look_up(host),
            found => Box::pin(core::future::ready(found.cloned().ok_or_else(|| unknown(host)))),
        }
    }
}

#[cold]
fn unknown(host: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no host `{host}` in the table"))
}
