//! The type `!`, which coerces to every other. Stable Rust allows it only as the return type of a function;
//! this takes it from there.

/// The type `!` of what does not return.
pub type NoReturn = <fn() -> ! as Returns>::Output;

/// The return type of a function type. A trait of this crate, and not the one of `convoke-core` that `CleanupFailure` uses: through a
/// trait of another crate the compiler does not know `!` from `()`, and refuses the implementations of traits for both.
#[doc(hidden)]
pub trait Returns {
    /// The return type.
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}
