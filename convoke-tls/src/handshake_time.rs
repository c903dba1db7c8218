//! The limit of the time that a handshake takes.

use core::time::Duration;
use std::io;

/// The default limit of the time that a handshake takes.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// The error of a peer that does not finish its handshake.
pub(crate) fn too_slow(peer: &str, time: Duration) -> io::Error {
    let message = format!("the {peer} has not finished the TLS handshake within {time:?}");
    io::Error::new(io::ErrorKind::TimedOut, message)
}
