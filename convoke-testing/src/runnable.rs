//! Work from a closure, for tests of executors.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::{Call, Header, Runnable, WorkKind};

/// Creates a runnable that calls `f` once: with [`Call::Run`] when it is run, or with [`Call::Stop`] when it
/// is dropped unrun. It allocates, unlike the work of programs.
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
    // SAFETY: the header stays in its leaked box until `call` takes the box back. `f` is `Send`, so any
    // thread may call it. The box is new, so there is no other runnable for it.
    unsafe { Runnable::new(NonNull::from(Box::leak(boxed)).cast()) }
}

#[repr(C)]
struct Boxed<F> {
    // The first field, so that a pointer to it is a pointer to the box.
    header: Header,
    f: F,
}

/// # Safety
/// Called once, with the header of a `Boxed<F>` that was leaked.
unsafe fn call<F: FnOnce(Call)>(header: NonNull<Header>, call: Call) {
    // SAFETY: `runnable` leaked the box and passed its header to `Runnable::new`, which calls this once.
    let boxed = unsafe { Box::from_raw(header.cast::<Boxed<F>>().as_ptr()) };
    (boxed.f)(call);
}
