//! The priorities of work in a pool.

/// Priority of work in a pool: selects the queue in which it waits. It is a property of the executor through
/// which work is posted: [`PoolExecutor::with_priority`](super::PoolExecutor::with_priority). Work inherits
/// it from the work that starts it, together with the executor.
///
/// Priorities order queued work; they do not interrupt running work. Nothing starves: after [`HIGH_IN_A_ROW`]
/// pieces of high work a thread runs one of another priority, and after [`OTHERS_EACH`] pieces that are not
/// high it runs a low one, if there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Runs when there is nothing else to do, or has waited long enough.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Runs before work of any other priority.
    High,
}

impl Priority {
    /// In the order of their indices.
    pub(super) const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    /// Returns the index into an array with one element for each priority.
    #[inline]
    pub(super) const fn index(self) -> usize {
        match self {
            Self::Low => 0,
            Self::Normal => 1,
            Self::High => 2,
        }
    }
}

/// Number of pieces of high priority that a thread runs in a row while other work waits. Then it runs one of
/// the others.
pub const HIGH_IN_A_ROW: u32 = 31;

/// Number of runs, not counting high priority, after which a thread first checks for low work and for work
/// from outside. So work that posts more work does not starve the rest.
pub const OTHERS_EACH: u32 = 61;
