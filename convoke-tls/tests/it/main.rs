//! The integration tests of `convoke-tls`: each file is a module of this one program.

mod buffers;
mod certificates;
mod close;
mod configurations;
mod exchange;
mod handshake;
mod openssl;
mod resumption;
mod simulated;
mod system_roots;
mod turns;
