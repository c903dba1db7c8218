//! The twin of `growing`: all calls stay on the stack of their thread.

/// Calls `f`.
#[inline(always)]
pub fn with_room<R>(f: impl FnOnce() -> R) -> R {
    f()
}
