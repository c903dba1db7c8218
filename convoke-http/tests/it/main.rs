//! The integration tests of `convoke-http`: each file is a module of this one program. Most run in the simulator, with
//! virtual time.

#[cfg(feature = "client")]
mod client;
mod conformance;
mod cores;
mod dates;
mod dead_peers;
mod deadlines;
mod dormant;
mod drain;
mod exchange;
mod failures;
#[cfg(all(feature = "client", feature = "tls"))]
mod fuzz;
mod half_open;
mod hang_up;
mod harness;
mod hostile;
mod hosts;
mod limits;
mod rt;
#[cfg(all(feature = "client", feature = "tower"))]
mod simulated_service;
mod streamed;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tower")]
mod tower;
mod upgrades;
mod windows;
