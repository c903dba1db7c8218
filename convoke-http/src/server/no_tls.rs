//! Connections without TLS, if the feature `tls` is off.

use std::io;

use super::protocol::Agreed;

/// The TLS of a server: none.
#[derive(Debug, Default)]
pub(super) struct Tls {}

/// A stream after a handshake that there is not.
pub(super) type Secured<S> = S;

impl Tls {
    /// Returns the stream as it is.
    pub(super) async fn secure<S>(&self, stream: S) -> io::Result<(Secured<S>, Agreed)> {
        Ok((stream, Agreed::default()))
    }
}
