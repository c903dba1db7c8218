//! The type of what does not return, which coerces to every other. Stable Rust lets one write it only as the return type of
//! a function; this takes it from there.

/// `!`.
pub type NoReturn = <fn() -> ! as Returns>::Output;

/// What a function returns.
#[doc(hidden)]
pub trait Returns {
    /// That.
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}
