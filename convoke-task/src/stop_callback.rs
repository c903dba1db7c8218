//! A stop callback on the stack.

#![allow(unsafe_code)]

use convoke_core::StopRef;
use convoke_core::raw::{OnStop, RawCallback};

/// Calls `f`. If a stop is requested meanwhile, or was requested before, `call` runs: on the thread that
/// requests it, or here. It does not run any more when this returns or unwinds.
pub(crate) fn with_stop_callback<R>(token: StopRef<'_>, call: impl OnStop, f: impl FnOnce() -> R) -> R {
    let callback = RawCallback::new(call);
    // SAFETY: rule 1 of `RawCallback`: it is on this stack, not moved, and removed when it is dropped, also by
    // unwinding. Rule 2: the token, and what the call borrows, outlive this function. Rule 3: it is registered
    // once.
    unsafe { callback.register(token) };
    f()
}
