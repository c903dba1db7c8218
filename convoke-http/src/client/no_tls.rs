//! No TLS, if the feature `tls` is off: requests for `https` are refused before a connection is opened.

use std::io;

use super::route::Versions;
use crate::secured::Secured;

/// The TLS of a client: none.
#[derive(Clone, Debug, Default)]
pub(super) struct Tls {}

impl Tls {
    pub(super) fn is_there(&self) -> bool {
        false
    }

    pub(super) async fn secure<S>(&self, _: &str, _: Versions, _: S) -> io::Result<(Secured<S>, bool)> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
