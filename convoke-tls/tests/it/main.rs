//! The integration tests of `convoke-tls`: each file is a module of this one program.

mod certificates;
mod close;
mod exchange;
mod handshake;
mod openssl;
mod simulated;
