//! Whose work this thread runs just now: that of a strand, or of a view that limits. It is how their `dispatch` knows that
//! the caller is inside.

use core::cell::Cell;

thread_local! {
    /// The address of the state of the innermost of them, or 0.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// For as long as it lives, this thread runs work of the one that it was entered for.
#[must_use = "the thread is inside for as long as this lives"]
pub(crate) struct Here {
    outer: usize,
}

impl Here {
    pub(crate) fn enter(whose: usize) -> Self {
        Self { outer: RUNNING.replace(whose) }
    }

    /// Whether the innermost one is this.
    #[inline]
    pub(crate) fn is(whose: usize) -> bool {
        RUNNING.get() == whose
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        RUNNING.set(self.outer);
    }
}
