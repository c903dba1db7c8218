//! Echo in a simulation: what the simulator adds to a message of a program under test, and whether that
//! depends on the number of hosts.
//!
//! The simulator turns on the instruments of tests for the whole program, which would change the other
//! scenarios. So this one is behind the feature `sim`, and is run by name:
//! `cargo run --profile bench -p convoke-bench --features sim -- sim_echo_10 sim_echo_100`.
//!
//! The peer, madsim, is a program of its own, `convoke-bench/madsim`: it simulates only programs that are built with
//! `RUSTFLAGS="--cfg madsim"`, which would replace the network of all other contestants in this program, too.

use super::Scenario;

#[cfg(feature = "sim")]
mod on_convoke;

pub(super) fn scenarios() -> Vec<Scenario> {
    #[cfg(feature = "sim")]
    return on_convoke::scenarios();
    #[cfg(not(feature = "sim"))]
    Vec::new()
}
