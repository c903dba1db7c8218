//! `PeerCredentials`: the process at the other end of a Unix stream.

/// The user, the group and the process at the other end of a Unix stream, as they were when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerCredentials {
    user: u32,
    group: u32,
    process: Option<i32>,
}

impl PeerCredentials {
    /// Creates credentials. For drivers.
    pub const fn new(user: u32, group: u32, process: Option<i32>) -> Self {
        Self { user, group, process }
    }

    /// Returns the effective user id.
    pub const fn uid(&self) -> u32 {
        self.user
    }

    /// Returns the effective group id.
    pub const fn gid(&self) -> u32 {
        self.group
    }

    /// Returns the process id, if the kernel reports it.
    pub const fn pid(&self) -> Option<i32> {
        self.process
    }
}
