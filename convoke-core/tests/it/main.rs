//! Integration tests of `convoke-core`: one file, or one folder, for each subject.

#![cfg(not(feature = "loom"))]

use convoke_testing::workshop::counting::CountingAllocator;

mod deep_stop;
mod env;
mod executor_ref;
mod executors;
mod frames;
mod intrusive_list;
mod lawless_allocator;
mod recycling;
mod runnable;
mod stop;
mod stop_callback;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
