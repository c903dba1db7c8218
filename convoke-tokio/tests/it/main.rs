//! The integration tests of `convoke-tokio`: each file is a module of this one program.

use convoke_testing::workshop::counting::CountingAllocator;

mod allocations;
mod bytes;
mod contract;
mod driven_by_others;
mod dropped;
mod fairness;
mod finish;
mod guest;
mod guide;
mod http_client;
mod hung_up;
mod inside;
mod join;
mod lawless_run;
mod local;
mod log;
mod nested;
mod runtime_ends;
mod workers;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
