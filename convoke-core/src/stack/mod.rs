//! Room on the stack. Bodies in bodies of one task are polled inside each other, as functions call each other. With
//! the feature `deep` they continue on a new stack when a part of the old one is used, so that depth costs heap.
//!
//! A new stack and not a later poll from the loop of the task: the futures around a body, which may be of other
//! crates, would have returned by then, and what they set up for the time of a poll (a span, a task-local) would
//! not hold in it.
//!
//! `growing` does that; `fixed` is its twin without the feature, on other processors than x86-64 and AArch64, and for the tools
//! that interpret a program (Miri, loom), which have no stack to switch.

#[cfg_attr(
    not(all(
        feature = "deep",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(miri, feature = "loom"))
    )),
    path = "fixed.rs"
)]
mod growing;

pub(crate) use growing::call_with_room;
pub use growing::with_room;
