//! Integration tests of `convoke`: one file, or one folder, for each subject.

#![cfg(not(feature = "loom"))]

mod accept_failures;
mod addresses;
mod attributes;
mod auto_traits;
mod budget;
mod built_trees;
mod compile_fail;
mod diagnosis;
mod doc_programs;
mod driven_context;
mod erased_streams;
mod examples;
mod first_week;
mod late_pool;
mod lawless_driver;
mod lawless_names;
mod lookups;
mod main_program;
mod network_examples;
mod papers;
mod random_graphs;
mod random_readers;
mod random_rounds;
mod random_sockets;
mod random_ways;
mod resolver;
mod runtime;
mod server;
mod server_program;
mod services;
mod signals;
mod simulated;
mod sockets;
mod streams;
mod sync_wait;
mod tree;
mod what_counts_as_work;
