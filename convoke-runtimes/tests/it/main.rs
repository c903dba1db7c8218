//! The integration tests of `convoke-runtimes`: each file is a module of this one program.

#[cfg(feature = "hickory")]
mod dns;
#[cfg(feature = "quinn")]
mod quic;
