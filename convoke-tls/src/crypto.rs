//! The cryptography of connections.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

/// Returns the provider that the program has installed for its process, else `ring`.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()))
}
