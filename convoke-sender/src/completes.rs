//! Compile-time knowledge about where a sender completes.

/// The thread and time at which a sender completes, as far as its type tells. Ordered from the most to the
/// least knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Completes {
    /// Before `start` returns, on the thread that started it.
    Inline,
    /// Perhaps later, but on the executor of the environment it was started with.
    Here,
    /// Anywhere, at any time.
    Anywhere,
}

impl Completes {
    /// Combines the knowledge about two pieces of work that run one after the other, or concurrently: the
    /// lesser one.
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Anywhere, _) | (_, Self::Anywhere) => Self::Anywhere,
            (Self::Here, _) | (_, Self::Here) => Self::Here,
            (Self::Inline, Self::Inline) => Self::Inline,
        }
    }

    /// Returns what is known from outside about work that runs in an environment with, perhaps, another
    /// executor: its "here" is another executor than ours.
    pub const fn with_other_executor(self) -> Self {
        if self.is_inline() { self } else { Self::Anywhere }
    }

    /// Returns true if the work completes before `start` returns.
    pub const fn is_inline(self) -> bool {
        matches!(self, Self::Inline)
    }
}

#[cfg(test)]
mod tests {
    use super::Completes::*;

    #[test]
    fn the_lesser_knowledge_wins() {
        assert_eq!(Inline.and(Inline), Inline);
        assert_eq!(Inline.and(Here), Here);
        assert_eq!(Anywhere.and(Here), Anywhere);
    }

    #[test]
    fn with_another_executor_here_is_elsewhere() {
        assert_eq!(
            [Inline, Here, Anywhere].map(super::Completes::with_other_executor),
            [Inline, Anywhere, Anywhere]
        );
    }
}
