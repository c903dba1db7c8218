//! Integration tests of `convoke-sender`: one file for each subject.

#![cfg(not(feature = "loom"))]

mod adaptor_contract;
mod async_scope;
mod awaited;
mod counting_scope;
mod counting_scope_spawn;
mod deep_boxed;
mod destructors;
mod lawless_awaits;
mod many_threads;
mod serial_steps;
