//! Integration tests of `convoke-exec`: one file, or one folder, for each subject.

#![cfg(not(feature = "loom"))]

use convoke_testing::workshop::counting::CountingAllocator;

mod bounded_runs;
mod delay_queue;
mod executor_contract;
mod executor_handle;
mod executor_lifetimes;
mod executors_that_fail;
mod interval;
mod lawless_loops;
mod limited;
mod loop_as_future;
mod moved_sleep;
mod nested_loops;
mod order;
mod owner_threads;
mod pool;
mod pool_memory;
mod priorities;
mod run_loop;
mod sleeper;
mod strand;
mod task_allocations;
mod task_memory;
mod time;
mod time_allocations;
mod timer_model;
mod timer_queue;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
