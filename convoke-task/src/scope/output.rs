//! What children and bodies of a scope return, and which of it is a failure.

use core::any::type_name;
use core::hash::{Hash, Hasher};
use core::mem::discriminant;

use crate::flow::NoReturn;

/// What a child of a scope may return, where the scope itself returns an `O`: nothing, or a `Result` whose error is the
/// scope's.
#[diagnostic::on_unimplemented(
    message = "a child that returns `{Self}` does not fit a scope that returns `{O}`",
    label = "a child returns `()`, or a `Result<(), E>` where the scope returns a `Result<_, E>`",
    note = "to use what a child returns, start it with `spawn_future` and await the handle",
    note = "an error of another type is turned into the scope's with `map_err`"
)]
pub trait ChildOutput<O>: Sized {
    /// What the scope returns if the child has failed.
    fn failure(self) -> Option<O>;
}

impl<O> ChildOutput<O> for () {
    #[inline]
    fn failure(self) -> Option<O> {
        None
    }
}

/// A child that does not return: a loop without an end.
impl<O> ChildOutput<O> for NoReturn {
    fn failure(self) -> Option<O> {
        self
    }
}

impl<T, E> ChildOutput<Result<T, E>> for Result<(), E> {
    #[inline]
    fn failure(self) -> Option<Result<T, E>> {
        self.err().map(Err)
    }
}

/// Whether a value of any type is an `Err`. A scope must know that of what its body returns: an error there stops the
/// children, a value does not.
///
/// There is no trait to ask: whatever is implemented for all types cannot say something else for `Result`. The type's name
/// and the discriminant tell it; a test pins both.
pub(crate) fn is_error<O>(value: &O) -> bool {
    struct Number(u64);
    impl Hasher for Number {
        fn write(&mut self, bytes: &[u8]) {
            self.0 |= bytes.iter().fold(0, |all, byte| all | u64::from(*byte));
        }
        fn finish(&self) -> u64 {
            self.0
        }
    }
    if !type_name::<O>().starts_with("core::result::Result<") {
        return false;
    }
    // The first variant, `Ok`, has the discriminant zero; all hashing of it writes zeros.
    let mut number = Number(0);
    discriminant(value).hash(&mut number);
    number.finish() != 0
}

#[cfg(test)]
mod tests {
    use super::is_error;

    #[test]
    fn an_error_is_told_from_values_of_all_types() {
        assert!(is_error(&Err::<(), ()>(())));
        assert!(is_error(&Err::<u32, String>(String::new())));
        assert!(is_error(&Err::<Box<u8>, Box<u8>>(Box::new(1))));
        assert!(is_error(&std::io::Result::<()>::Err(std::io::Error::other("x"))));
        assert!(is_error(&Err::<convoke_core::Never, u8>(0)));
        assert!(!is_error(&Ok::<(), ()>(())));
        assert!(!is_error(&Ok::<u32, String>(1)));
        assert!(!is_error(&Ok::<u32, convoke_core::Never>(1)));
        assert!(!is_error(&Ok::<Result<u8, u8>, u8>(Err(1))));
        assert!(!is_error(&None::<u8>) && !is_error(&Some(1)) && !is_error(&()) && !is_error(&"text"));
        assert!(!is_error(&Some(Err::<u8, u8>(1))));
    }
}
