//! Socket addresses: an Internet address, or a path in the file system.

use core::fmt;
use core::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The address of a socket of any kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// An Internet address and a port.
    Internet(SocketAddr),
    /// The path of a Unix socket.
    Path(PathBuf),
    /// A Unix socket without a name.
    Unnamed,
}

impl Address {
    /// Returns the Internet address, if it is one.
    pub fn internet(&self) -> Option<SocketAddr> {
        match self {
            Self::Internet(address) => Some(*address),
            Self::Path(_) | Self::Unnamed => None,
        }
    }

    /// Returns the path, if it is the address of a Unix socket with a name.
    #[doc(alias = "as_pathname")]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Internet(_) | Self::Unnamed => None,
        }
    }

    /// Returns true if it is the address of a Unix socket.
    pub fn is_unix(&self) -> bool {
        !matches!(self, Self::Internet(_))
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Internet(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::Path(path) => path.display().fmt(f),
            Self::Unnamed => f.write_str("(unnamed)"),
        }
    }
}
