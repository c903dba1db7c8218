//! Connections without TLS, if the feature `tls` is off.

use std::io;

use super::protocol::Agreed;
use crate::secured::Secured;

/// The TLS of a server: none.
#[derive(Debug, Default)]
pub(super) struct Tls {}

impl Tls {
    /// Returns the stream as it is.
    pub(super) async fn secure<S>(&self, stream: S) -> io::Result<(Secured<S>, Agreed)> {
        Ok((Secured::plain(stream), Agreed::default()))
    }
}
