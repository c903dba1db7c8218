//! Integration tests of `convoke-poll`: one file or folder for each subject.

#![cfg(not(feature = "loom"))]

use convoke_testing::workshop::counting::CountingAllocator;

mod allocations;
mod descriptors;
mod descriptors_run_out;
mod driver_contract;
mod dropped_sources;
mod readiness;
mod repeated_waits;
mod sigpipe;
mod sockets;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
