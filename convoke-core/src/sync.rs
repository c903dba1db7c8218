//! The one file that chooses between the standard atomics, locks and threads and loom's. With the feature
//! `loom`, which is for models only, everything runs inside the model checker. `raw::sync` is the public face
//! of this file.

#![allow(unsafe_code)]

#[cfg(not(feature = "loom"))]
mod chosen {
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
    pub use std::thread;

    /// Runs a model: once, like an ordinary test. With the feature `loom` it runs under every schedule.
    pub fn model<F: Fn() + Send + Sync + 'static>(f: F) {
        f();
    }

    /// `std`'s cell with the interface of loom's: access is through a closure, so that a model sees its
    /// beginning and end.
    #[derive(Debug)]
    #[repr(transparent)]
    pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps `value`.
        #[inline]
        pub const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        /// Calls `f` with the address, to read the value.
        #[inline]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Calls `f` with the address, to write the value.
        #[inline]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }

        /// Returns the value.
        #[inline]
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// Returns the address, for writing. In a model this call is the access: later uses of the pointer
        /// are not checked.
        #[inline]
        pub const fn get(&self) -> *mut T {
            self.0.get()
        }

        /// Returns the address, for reading by several threads at once.
        #[inline]
        pub const fn get_const(&self) -> *const T {
            self.0.get().cast_const()
        }

        /// Returns the value, to which there is no other reference.
        #[inline]
        pub const fn get_mut(&mut self) -> &mut T {
            self.0.get_mut()
        }
    }
}

#[cfg(feature = "loom")]
mod chosen {
    pub use loom::model;
    pub use loom::sync::{
        Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic,
    };

    pub mod thread {
        //! loom's threads. No time passes in a model.
        pub use loom::thread::*;

        /// Parks the thread until it is unparked: a timeout never passes.
        pub fn park_timeout(_: std::time::Duration) {
            park();
        }
    }

    /// loom's cell, with an access by address that is checked when it begins and has no end.
    #[derive(Debug)]
    pub struct UnsafeCell<T: ?Sized>(loom::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps `value`.
        #[track_caller]
        pub fn new(value: T) -> Self {
            Self(loom::cell::UnsafeCell::new(value))
        }

        /// Returns the value.
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// Calls `f` with the address, to read the value.
        #[track_caller]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            self.0.with(f)
        }

        /// Calls `f` with the address, to write the value.
        #[track_caller]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            self.0.with_mut(f)
        }

        /// Returns the address, for writing. This call is the access: later uses of the pointer are not
        /// checked.
        #[track_caller]
        pub fn get(&self) -> *mut T {
            self.0.with_mut(|value| value)
        }

        /// Returns the address, for reading by several threads at once.
        #[track_caller]
        pub fn get_const(&self) -> *const T {
            self.0.with(|value| value)
        }

        /// Returns the value, to which there is no other reference.
        pub fn get_mut(&mut self) -> &mut T {
            // SAFETY: `&mut self` is the only reference to the cell for as long as the result lives.
            unsafe { &mut *self.get() }
        }
    }
}

pub use chosen::*;

impl<T: Default> Default for UnsafeCell<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// Declares a thread-local with a constant initial value. loom's macro has no `const`.
#[cfg(not(feature = "loom"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __thread_local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        std::thread_local! { $(#[$attribute])* static $name: $type = const { $value }; }
    };
}

/// Declares a thread-local of the model.
#[cfg(feature = "loom")]
#[doc(hidden)]
#[macro_export]
macro_rules! __thread_local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $crate::__loom::thread_local! { $(#[$attribute])* static $name: $type = $value; }
    };
}

pub use crate::__thread_local as thread_local;

/// Declares a constructor that is `const`, except in models: loom's atomics and cells register with the model
/// when they are created.
#[cfg(not(feature = "loom"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __const_outside_models {
    ($(#[$attribute:meta])* $visible:vis fn $($rest:tt)*) => { $(#[$attribute])* $visible const fn $($rest)* };
    ($(#[$attribute:meta])* $visible:vis unsafe fn $($rest:tt)*) => {
        $(#[$attribute])* $visible const unsafe fn $($rest)*
    };
}

/// Declares a constructor as it is written.
#[cfg(feature = "loom")]
#[doc(hidden)]
#[macro_export]
macro_rules! __const_outside_models {
    ($($function:tt)*) => { $($function)* };
}

pub use crate::__const_outside_models as const_outside_models;

/// Declares a `static` with a constant initial value. In a model there is a new one for each schedule.
#[cfg(not(feature = "loom"))]
macro_rules! process_static {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $(#[$attribute])* static $name: $type = $value;
    };
}

#[cfg(feature = "loom")]
macro_rules! process_static {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        loom::lazy_static! { $(#[$attribute])* static ref $name: $type = $value; }
    };
}

pub(crate) use process_static;

thread_local! {
    static MARK: core::cell::Cell<u64> = core::cell::Cell::new(0);
}

/// Returns a number that no other thread of the process has, had, or will have. Cheaper than the thread's id.
/// The address of a thread-local would not do: a later thread may get the same one.
#[inline]
pub fn thread_mark() -> u64 {
    let mark = MARK.with(core::cell::Cell::get);
    if mark != 0 { mark } else { new_mark() }
}

/// Returns a number that no other living thread has: the address of a thread-local, which the compiler knows
/// not to change within a function. A later thread may get the same number once this one has ended; see
/// [`thread_mark`].
#[inline]
pub fn live_thread_mark() -> usize {
    MARK.with(|mark| core::ptr::from_ref(mark).addr())
}

/// Assigns a mark to this thread. The counter is not loom's: it orders nothing between threads.
#[cold]
#[inline(never)]
fn new_mark() -> u64 {
    static LAST: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let mark = LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
    MARK.with(|own| own.set(mark));
    mark
}
