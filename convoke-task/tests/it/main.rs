//! Integration tests of `convoke-task`: one file, or one folder, for each subject.

#![cfg(not(feature = "loom"))]

mod begun_clean_up;
mod begun_futures;
mod block_on;
mod blocking;
mod blocking_scope;
mod bound;
mod child_builder;
mod cleanup;
mod combinations;
mod concurrent;
mod context;
mod depth;
mod doors;
mod foreign_futures;
mod foreign_wakers;
mod framed;
mod generator;
mod inline_time;
mod launch;
mod lawless;
mod lawless_closures;
mod lawless_executor;
mod lawless_futures;
mod lawless_home;
mod lawless_policy;
mod lawless_sleeper;
mod lawless_wakers;
mod limits;
mod local_scope;
mod long_chains;
mod policy;
mod polled_again;
mod random_tasks;
mod schedule;
mod scope;
mod scope_on;
mod stop_everywhere;
mod sync_generator;
mod task;
mod task_edges;
mod together;
mod unheard_panics;
mod wake_locally;
