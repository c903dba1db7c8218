//! The twin of `growing`: all calls stay on the stack of their thread.

/// Calls `f`.
#[inline(always)]
pub fn with_room<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Calls `f`.
#[inline(always)]
pub(crate) fn call_with_room(f: &mut dyn FnMut()) {
    f();
}
