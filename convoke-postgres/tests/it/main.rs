//! Tests of the pool, against a server that is a part of the simulation.

#![allow(missing_docs)]

mod fake;
mod fleet;
mod fuzz;
mod harness;
mod limits;
mod statements;
mod stops;
mod testing;
#[cfg(feature = "tls")]
mod tls;
mod transactions;
