//! Counts how many elements of a collection were visited, for tests of costs: a test that counts steps says the same on every
//! machine. Nothing is counted in other builds.

#[cfg(test)]
std::thread_local! {
    static VISITED: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// One element was visited.
#[inline]
pub(crate) fn visit() {
    #[cfg(test)]
    VISITED.with(|visited| visited.set(visited.get() + 1));
}

/// Returns how many elements this thread visits while it runs `f`.
#[cfg(all(test, not(feature = "loom")))]
pub(crate) fn count(f: impl FnOnce()) -> usize {
    let before = VISITED.with(core::cell::Cell::get);
    f();
    VISITED.with(core::cell::Cell::get) - before
}
