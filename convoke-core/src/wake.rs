//! Calls into wakers. A waker is code of the program: it may panic, block, or call back into the type that
//! calls it. So wakers are cloned, called and dropped while no lock is held. A panic of one is caught here:
//! other waiters are still to be woken, and the caller may itself be unwinding.

use core::task::Waker;

use crate::Panic;

use crate::report_panic::contain;

/// Wakes the task. Reports a panic of the waker.
#[inline]
pub fn wake(waker: Waker) {
    contain(report, || waker.wake());
}

/// Wakes the task if there is a waker. Reports a panic of the waker.
#[inline]
pub fn wake_if_any(waker: Option<Waker>) {
    if let Some(waker) = waker {
        wake(waker);
    }
}

/// Drops a waker that is not needed. Reports a panic of its destructor.
#[inline]
pub fn discard(waker: Waker) {
    contain(report, || drop(waker));
}

#[cold]
fn report(panic: Panic) {
    eprintln!("convoke: a waker {panic}; the other waiters are woken");
}
