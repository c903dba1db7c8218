//! Integration tests of `convoke-sync`: one file, or one folder, for each subject.

#![cfg(not(feature = "loom"))]

mod ledger;
mod sync;
