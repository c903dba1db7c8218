//! The surroundings of a pool's sessions: its options, and the scope that its connections are children of.

use convoke_task::Scope;

use crate::options::PoolOptions;

/// Options and scope of a pool.
pub(crate) struct Surroundings {
    pub(crate) options: PoolOptions,
    pub(crate) scope: Scope<()>,
}
