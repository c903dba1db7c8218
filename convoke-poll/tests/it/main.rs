//! Integration tests of `convoke-poll`: one file, or one folder, for each subject.

#![cfg(not(feature = "loom"))]

use convoke_testing::workshop::counting::CountingAllocator;

mod allocations;
mod descriptors_run_out;
mod driver_contract;
mod sockets;
mod sources_that_go;
mod waiting_again;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
