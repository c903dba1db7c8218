//! A caught panic: the payload of [`Outcome::Panicked`](crate::Outcome::Panicked).

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A panic that was caught where it happened and is passed to the code that waits for the work.
pub struct Panic {
    /// Taken out once: by `drop`, or by `into_payload`, which forgets the rest.
    payload: ManuallyDrop<Box<dyn Any + Send>>,
}

// SAFETY: a shared reference gives out the payload only as a type that is `Sync`: `downcast_ref` asks for
// that, and `message` for text. An error that may be a panic can so go into a `Box<dyn Error + Send + Sync>`.
unsafe impl Sync for Panic {}

impl Drop for Panic {
    #[inline]
    fn drop(&mut self) {
        discard((&raw mut self.payload).cast());
    }
}

/// The number of nested panics to catch: a payload may panic when it is dropped, and so may that panic's
/// payload.
const MAX_NESTED_PANICS: usize = 8;

/// Drops a payload. Payloads that its destructor throws are dropped in turn, and leaked after
/// `MAX_NESTED_PANICS`.
///
/// Out of line, and `extern "C"`, which does not unwind: outcomes are dropped in many places and hardly ever
/// hold a panic. With this code, and landing pads for it, inlined there, operations would be too large to be
/// inlined.
#[cold]
#[inline(never)]
extern "C" fn discard(payload: *mut core::ffi::c_void) {
    let payload = payload.cast::<ManuallyDrop<Box<dyn Any + Send>>>();
    // SAFETY: only `Panic::drop` calls this, with the address of its field, which is not used afterwards.
    let mut thrown = catch_unwind(AssertUnwindSafe(|| unsafe { ManuallyDrop::drop(&mut *payload) })).err();
    for _ in 0..MAX_NESTED_PANICS {
        let Some(next) = thrown else { return };
        thrown = catch_unwind(AssertUnwindSafe(|| drop(next))).err();
    }
    core::mem::forget(thrown);
}

impl Panic {
    /// Creates a panic with this message, as `panic!` would, without raising it.
    pub fn new(message: impl Into<String>) -> Self {
        Self::from_payload(Box::new(message.into()))
    }

    /// Wraps a payload as `std::panic::catch_unwind` and `JoinHandle::join` return it.
    pub fn from_payload(payload: Box<dyn Any + Send>) -> Self {
        Self { payload: ManuallyDrop::new(payload) }
    }

    /// Calls `f` and catches its panic.
    ///
    /// Does not ask for `UnwindSafe`: the work that `f` belongs to ends with this panic, so that our code
    /// does not use again what `f` left half-done.
    #[inline]
    pub fn catch<T>(f: impl FnOnce() -> T) -> Result<T, Self> {
        // Not `map_err`: each use of this function would compile an instance of that, too.
        match catch_unwind(AssertUnwindSafe(f)) {
            Ok(value) => Ok(value),
            Err(payload) => Err(Self::from_payload(payload)),
        }
    }

    /// Calls `f` and returns its panic. Has no type parameters, so that it is compiled once, and not with all that it is
    /// made of for each closure: for code that is itself compiled for each type of task. Where it is inlined, the
    /// compiler sees through the call.
    #[inline]
    #[doc(hidden)]
    pub fn catch_call(f: &mut dyn FnMut()) -> Result<(), Self> {
        Self::catch(f)
    }

    /// Drops `value` and returns the panic of its destructor, if it panics.
    #[inline]
    pub fn of_drop<T>(value: T) -> Option<Self> {
        if core::mem::needs_drop::<T>() { Self::catch(|| drop(value)).err() } else { None }
    }

    /// Returns the message of the panic, or a fixed text if the payload is not text.
    pub fn message(&self) -> &str {
        if let Some(text) = self.payload.downcast_ref::<&'static str>() {
            text
        } else if let Some(text) = self.payload.downcast_ref::<String>() {
            text
        } else {
            "a panic whose payload is not text"
        }
    }

    /// Returns true if the payload is text.
    pub fn is_text(&self) -> bool {
        self.payload.is::<&'static str>() || self.payload.is::<String>()
    }

    /// Returns the payload if it is a `T`. Several threads may do so at once, hence `Sync`; for other types
    /// use [`into_payload`](Panic::into_payload).
    pub fn downcast_ref<T: Any + Sync>(&self) -> Option<&T> {
        self.payload.downcast_ref()
    }

    /// Returns the payload.
    pub fn into_payload(self) -> Box<dyn Any + Send> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is forgotten, so that the payload is taken once and not dropped here.
        unsafe { ManuallyDrop::take(&mut this.payload) }
    }

    /// Resumes the panic on this thread. The panic hook ran when it was raised and does not run again.
    pub fn resume(self) -> ! {
        resume_unwind(self.into_payload())
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message()).finish()
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.message())
    }
}

impl core::error::Error for Panic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caught_panic_keeps_its_words() {
        let number = 7;
        assert_eq!(Panic::catch(|| panic!("plain")).unwrap_err().message(), "plain");
        assert_eq!(Panic::catch(|| panic!("number {number}")).unwrap_err().message(), "number 7");
        assert_eq!(Panic::catch(|| 3).unwrap(), 3);
    }

    #[test]
    fn a_payload_of_any_type_survives() {
        let panic = Panic::catch(|| std::panic::panic_any(42_u8)).unwrap_err();
        assert_eq!(panic.message(), "a panic whose payload is not text");
        assert_eq!((panic.downcast_ref::<u8>(), panic.downcast_ref::<u16>()), (Some(&42), None));
        assert_eq!(panic.into_payload().downcast_ref::<u8>(), Some(&42));
    }

    #[test]
    fn a_resumed_panic_is_the_same_panic() {
        let again = Panic::catch(|| Panic::new("once").resume()).unwrap_err();
        assert_eq!(again.message(), "once");
    }
}
