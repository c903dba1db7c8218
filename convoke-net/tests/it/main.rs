//! Integration tests of `convoke-net`: one file or folder for each subject.

#![cfg(not(feature = "loom"))]

mod erased_streams;
mod lawless_driver;
mod streams;
mod what_counts_as_work;
