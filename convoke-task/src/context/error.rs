//! Why a service is not to be had.

use core::fmt;

/// Why a context did not make or add a service. Each names the interface that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceError {
    /// There is one already; the new one was not made.
    Duplicate(&'static str),
    /// The context has been shut down and takes no new services.
    ShutDown(&'static str),
    /// The service is being made and, directly or through others, asks for itself.
    Cyclic(&'static str),
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(name) => write!(f, "the context has a service `{name}` already"),
            Self::ShutDown(name) => {
                write!(f, "the context has been shut down; it takes no new service `{name}`")
            }
            Self::Cyclic(name) => write!(f, "the service `{name}` needs itself in order to be made"),
        }
    }
}

impl core::error::Error for ServiceError {}
