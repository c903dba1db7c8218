//! A runnable from a closure, for tests of executors.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::{Call, Header, Runnable, WorkKind};

/// A runnable that calls `f` with what became of it: [`Call::Run`] when it is run, [`Call::Stop`] when it is dropped
/// unrun. It allocates, as the work of a program does not.
///
/// ```
/// use convoke::raw::Call;
/// use convoke::testing::runnable;
///
/// runnable(|call| assert_eq!(call, Call::Run)).run();
/// drop(runnable(|call| assert_eq!(call, Call::Stop)));
/// ```
pub fn runnable<F: FnOnce(Call) + Send + 'static>(f: F) -> Runnable {
    let boxed = Box::new(Boxed { header: Header::new(const { &WorkKind::new(call::<F>) }), f });
    // SAFETY: the header stays in its box until `call` takes it back; `f` is `Send`, so any thread may do that; the box
    // was made just now, so there is no other runnable for it.
    unsafe { Runnable::new(NonNull::from(Box::leak(boxed)).cast()) }
}

#[repr(C)]
struct Boxed<F> {
    // First, so that a pointer to it is a pointer to the box.
    header: Header,
    f: F,
}

/// # Safety
/// Called once, with the header of a `Boxed<F>` that was leaked.
unsafe fn call<F: FnOnce(Call)>(header: NonNull<Header>, call: Call) {
    // SAFETY: the caller's, that is `runnable`'s promise to `Runnable::new`.
    let boxed = unsafe { Box::from_raw(header.cast::<Boxed<F>>().as_ptr()) };
    (boxed.f)(call);
}
