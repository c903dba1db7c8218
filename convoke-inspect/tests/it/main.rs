//! Integration tests of `convoke-inspect`: one file, or one folder, for each subject.

#![cfg(not(feature = "loom"))]

mod diagnosis;
mod tree;
