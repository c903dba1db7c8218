//! Inspection of a running program: the tree of its tasks, and a diagnosis of what is slow or hangs.
//!
//! Both read what the tasks and locks record anyway, from any thread, without stopping the program. So they
//! see tasks at slightly different moments, and treat what they read as a snapshot that may already be out of
//! date.
//!
//! | module | contents |
//! | --- | --- |
//! | [`tree()`], [`mod@tree`] | the live tasks, and what they wait for |
//! | [`diagnosis`], [`diagnose()`] | tasks that block their executor, and tasks that deadlock alone or with others |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "diagnosis")]
pub mod diagnosis;
pub mod tree;

#[cfg(feature = "diagnosis")]
pub use diagnosis::diagnose;
pub use tree::tree;

pub mod raw {
    //! The parts that are tested on their own.

    #[doc(hidden)]
    pub use crate::tree::build;
}
