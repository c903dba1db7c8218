//! `unsize_box!`: erases the type of the value in a `FrameBox`. The standard library does it by a trait that only
//! nightly Rust has.

/// Erases the type of the value in a [`FrameBox`](crate::raw::FrameBox): `unsize_box!(value, dyn Any)`. The
/// compiler checks that the value is one of the erased type.
#[doc(hidden)]
#[macro_export]
macro_rules! unsize_box {
    ($value:expr, $erased:ty) => {{
        let value = $value;
        // SAFETY: the closure returns the address that it is given: it coerces the pointer, and does not cast it.
        unsafe {
            $crate::raw::FrameBox::with_pointer(value, |value| {
                let erased: *mut $erased = value;
                erased
            })
        }
    }};
}
