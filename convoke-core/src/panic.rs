//! A panic, caught and carried: the payload of the fourth door of [`Outcome`](crate::Outcome).

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A panic that was caught where it happened and is on its way to whoever waits for the work.
pub struct Panic {
    /// Taken out once: by `drop` or by `into_payload`, which forgets the rest.
    payload: ManuallyDrop<Box<dyn Any + Send>>,
}

// SAFETY: through a shared reference the payload is seen only as what is `Sync`: see `downcast_ref` and `message`. So an error
// that may be a panic goes where errors go: into a `Box<dyn Error + Send + Sync>`.
unsafe impl Sync for Panic {}

impl Drop for Panic {
    #[inline]
    fn drop(&mut self) {
        discard((&raw mut self.payload).cast());
    }
}

/// How often a payload may throw another when it is dropped, until that is leaked.
const MOST_PANICS_IN_A_ROW: usize = 8;

/// Drops a payload that nobody takes. Out of line, and `extern "C"`, which does not unwind: an outcome that may hold a
/// panic is dropped everywhere and hardly ever holds one; with the code for it, and for a second panic out of it, in
/// every such place, operations would be too large to be inlined. What a payload throws when it is dropped is
/// dropped in its turn, and leaked if that goes on and on.
#[cold]
#[inline(never)]
extern "C" fn discard(payload: *mut core::ffi::c_void) {
    let payload = payload.cast::<ManuallyDrop<Box<dyn Any + Send>>>();
    // SAFETY: called by `Panic::drop` alone, with the address of its field, which is not used again.
    let mut thrown = catch_unwind(AssertUnwindSafe(|| unsafe { ManuallyDrop::drop(&mut *payload) })).err();
    for _ in 0..MOST_PANICS_IN_A_ROW {
        let Some(next) = thrown else { return };
        thrown = catch_unwind(AssertUnwindSafe(|| drop(next))).err();
    }
    core::mem::forget(thrown);
}

impl Panic {
    /// A panic with this message, as if by `panic!`, but not raised yet.
    pub fn new(message: impl Into<String>) -> Self {
        Self::from_payload(Box::new(message.into()))
    }

    /// Wraps a payload as `std::panic::catch_unwind` and `JoinHandle::join` return it.
    pub fn from_payload(payload: Box<dyn Any + Send>) -> Self {
        Self { payload: ManuallyDrop::new(payload) }
    }

    /// Calls `f` and catches its panic.
    ///
    /// Nothing that `f` left half-done is seen again by our code: the work it belongs to ends with this panic.
    /// That is the reason why no `UnwindSafe` is asked for.
    #[inline]
    pub fn catch<T>(f: impl FnOnce() -> T) -> Result<T, Self> {
        catch_unwind(AssertUnwindSafe(f)).map_err(Self::from_payload)
    }

    /// Drops `value` and catches the panic of its destructor: where somebody waits for what comes after.
    #[inline]
    pub fn of_drop<T>(value: T) -> Option<Self> {
        if core::mem::needs_drop::<T>() { Self::catch(|| drop(value)).err() } else { None }
    }

    /// What the panic said, if it said it in words.
    pub fn message(&self) -> &str {
        if let Some(text) = self.payload.downcast_ref::<&'static str>() {
            text
        } else if let Some(text) = self.payload.downcast_ref::<String>() {
            text
        } else {
            "a panic whose payload is not text"
        }
    }

    /// Whether the panic said something in words.
    pub fn is_text(&self) -> bool {
        self.payload.is::<&'static str>() || self.payload.is::<String>()
    }

    /// What was thrown, if it is one of these. That may be looked at by several threads; what may not is found in
    /// [`into_payload`](Panic::into_payload).
    pub fn downcast_ref<T: Any + Sync>(&self) -> Option<&T> {
        self.payload.downcast_ref()
    }

    /// What was thrown, owned.
    pub fn into_payload(self) -> Box<dyn Any + Send> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the field is not used again, and nothing else is in here to be dropped.
        unsafe { ManuallyDrop::take(&mut this.payload) }
    }

    /// Goes on panicking, here. The panic hook has run already and is not run again.
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
