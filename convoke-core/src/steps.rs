//! Counts the elements of a collection that an algorithm visits, for tests of its cost: unlike a time, a
//! count is the same on every machine. Counts only with the feature `testing`.

#[cfg(feature = "testing")]
std::thread_local! {
    static VISITED: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// Counts one visited element.
#[inline]
pub fn visit() {
    #[cfg(feature = "testing")]
    VISITED.with(|visited| visited.set(visited.get() + 1));
}

/// Returns the number of elements that this thread visits while it runs `f`.
#[cfg(feature = "testing")]
pub fn count(f: impl FnOnce()) -> usize {
    let before = VISITED.with(core::cell::Cell::get);
    f();
    VISITED.with(core::cell::Cell::get) - before
}
