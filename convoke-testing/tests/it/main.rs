//! Integration tests of `convoke-testing`: one file, or one folder, for each subject.

#![cfg(not(feature = "loom"))]

mod contracts;
mod explore_inner_stops;
mod explore_stops;
mod lawless_explore;
mod play;
mod sequencer_and_trace;
