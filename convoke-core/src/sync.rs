//! The one place that chooses between the machine's atomics and loom's. With the feature `loom` (our own models,
//! and those of people who build on us) everything below runs inside the model checker; nobody else turns it on.
//! `raw::sync` is its public face.

#![allow(unsafe_code)]

#[cfg(not(feature = "loom"))]
mod chosen {
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
    pub use std::thread;

    /// Runs the model: with the feature `loom` under every schedule, without it once, as an ordinary test.
    pub fn model<F: Fn() + Send + Sync + 'static>(f: F) {
        f();
    }

    /// `std`'s cell with loom's way of access: through a closure, so that a model sees where it begins and ends.
    #[derive(Debug)]
    #[repr(transparent)]
    pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps `value`.
        #[inline]
        pub const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        /// Access for reading.
        #[inline]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Access for writing.
        #[inline]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }

        /// The value.
        #[inline]
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// The address, for writing. In a model this call is the access: what is pointed into for longer is not seen.
        #[inline]
        pub const fn get(&self) -> *mut T {
            self.0.get()
        }

        /// The address, for reading by several threads at once.
        #[inline]
        pub const fn get_const(&self) -> *const T {
            self.0.get().cast_const()
        }

        /// The value, which nobody else can reach.
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
        //! loom's threads; no time passes in a model.
        pub use loom::thread::*;

        /// Sleeps until it is woken.
        pub fn park_timeout(_: std::time::Duration) {
            park();
        }
    }

    /// loom's cell, and access to it that is checked when it begins and has no end.
    #[derive(Debug)]
    pub struct UnsafeCell<T: ?Sized>(loom::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps `value`.
        #[track_caller]
        pub fn new(value: T) -> Self {
            Self(loom::cell::UnsafeCell::new(value))
        }

        /// The value.
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// Access for reading.
        #[track_caller]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            self.0.with(f)
        }

        /// Access for writing.
        #[track_caller]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            self.0.with_mut(f)
        }

        /// The address, for writing. This call is the access: what is pointed into for longer is not seen.
        #[track_caller]
        pub fn get(&self) -> *mut T {
            self.0.with_mut(|value| value)
        }

        /// The address, for reading by several threads at once.
        #[track_caller]
        pub fn get_const(&self) -> *const T {
            self.0.with(|value| value)
        }

        /// The value, which nobody else can reach.
        pub fn get_mut(&mut self) -> &mut T {
            // SAFETY: the reference is the only way to the cell for as long as it lives.
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

/// A thread-local whose initial value is a constant; loom's macro knows no `const`.
#[cfg(not(feature = "loom"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __thread_local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        std::thread_local! { $(#[$attribute])* static $name: $type = const { $value }; }
    };
}

/// A thread-local of the model.
#[cfg(feature = "loom")]
#[doc(hidden)]
#[macro_export]
macro_rules! __thread_local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $crate::__loom::thread_local! { $(#[$attribute])* static $name: $type = $value; }
    };
}

pub use crate::__thread_local as thread_local;

/// Declares a constructor that is `const`, except in models: loom's atomics and cells register with the model when
/// they are made.
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

/// A value of the whole process, made by a constant expression; in a model there is a new one for each schedule.
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

/// Returns a number that no other thread of the process has, had, or will have. Cheaper to ask for than the thread's id. The
/// address of a thread-local would not do: the next thread may get it again.
#[inline]
pub fn thread_mark() -> u64 {
    let mark = MARK.with(core::cell::Cell::get);
    if mark != 0 { mark } else { new_mark() }
}

/// Returns a number that no other thread has that is alive now: the address of a thread-local, which the compiler knows not to
/// change within a function. The next thread may get it again once this one has ended; see [`thread_mark`].
#[inline]
pub fn live_thread_mark() -> usize {
    MARK.with(|mark| core::ptr::from_ref(mark).addr())
}

/// Not loom's counter: it says nothing of what other threads have done.
#[cold]
#[inline(never)]
fn new_mark() -> u64 {
    static LAST: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let mark = LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
    MARK.with(|own| own.set(mark));
    mark
}
