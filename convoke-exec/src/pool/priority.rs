//! How urgent work is. A priority is a property of the handle through which work is posted.

/// How urgent the work of a pool is: which of its queues it waits in. Chosen where work is launched, by a handle:
/// [`PoolExecutor::with_priority`](super::PoolExecutor::with_priority); inherited by all that it starts, because that inherits
/// the executor.
///
/// Priorities order what waits; they do not interrupt what runs. Nothing starves: of [`HIGH_IN_A_ROW`] and one that a
/// thread runs, one is not high, and of [`OTHERS_EACH`] and one that are not, one is low, if there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// When there is nothing else to do, or it has waited for long enough.
    Low,
    /// As everybody.
    #[default]
    Normal,
    /// Before everything that is not.
    High,
}

impl Priority {
    pub(super) const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];
}

/// So many pieces of high priority a thread runs one after the other, while others wait. Then it runs one of those.
pub const HIGH_IN_A_ROW: u32 = 31;

/// After so many runs, not counting those of high priority, a thread looks first at what is low, and at what came from
/// outside: so that work which breeds work does not starve the rest.
pub const OTHERS_EACH: u32 = 61;
