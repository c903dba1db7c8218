//! Counts the steps of loops through those who wait, for tests that say how many a call may take. In programs it is nothing.

pub(crate) use counted::*;

#[cfg(not(test))]
mod counted {
    #[inline]
    pub(crate) fn step() {}
}

#[cfg(test)]
mod counted {
    use core::cell::Cell;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn step() {
        STEPS.set(STEPS.get() + 1);
    }

    /// Counts the steps that `act` takes on this thread.
    #[cfg(not(feature = "loom"))]
    pub(crate) fn steps(act: impl FnOnce()) -> usize {
        let before = STEPS.get();
        act();
        STEPS.get() - before
    }
}
