//! Inspecting a running program: the tree of its tasks, and what is wrong with one that is slow or hangs.
//!
//! | module | contents |
//! | --- | --- |
//! | [`tree()`], [`mod@tree`] | which tasks there are, and what they wait for |
//! | [`diagnosis`], [`diagnose()`] | tasks that hold their executor, wait for themselves, or for each other |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

pub mod diagnosis;
pub mod tree;

pub use diagnosis::diagnose;
pub use tree::tree;
