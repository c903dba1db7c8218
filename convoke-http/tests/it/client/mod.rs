//! The client, against our server and against servers that are written byte by byte.

#[cfg(feature = "tower")]
mod axum;
mod basics;
mod closing;
mod cores;
mod hostile;
mod hosts;
mod pool;
mod proxies;
mod redirects;
mod retries;
mod scripted;
mod stops;
#[cfg(feature = "tls")]
mod system_roots;
mod timeouts;
#[cfg(feature = "tls")]
pub(crate) mod tls;
mod upgrades;
