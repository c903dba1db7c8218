//! Integration tests of `convoke-sync`: one file, or one folder, for each subject.

#![cfg(not(feature = "loom"))]

use convoke_testing::workshop::counting::CountingAllocator;

mod ledger;
mod sync;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
