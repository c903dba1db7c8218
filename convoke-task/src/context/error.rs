//! The error of a service that was not made.

use core::fmt;

/// The reason why a context did not make or add a service. Each names the interface that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceError {
    /// There is a service of this interface already; the new one was not made.
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
            Self::Cyclic(name) => {
                write!(f, "the service `{name}` needs itself to be made: break the cycle of services")
            }
        }
    }
}

impl core::error::Error for ServiceError {}
