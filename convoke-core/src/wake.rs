//! Calls into wakers. A waker is code of the program: it may panic, block, or come back into what it waits for. So it is
//! cloned, called and dropped while no lock is held. A panic of one ends here: behind it others wait to be woken, or the
//! caller has more to do, and may itself run because a panic unwinds.

use core::task::Waker;

use crate::Panic;

use crate::report_panic::contain;

/// Wakes. A panic of the waker is reported.
#[inline]
pub fn wake(waker: Waker) {
    contain(report, || waker.wake());
}

/// Wakes, if there is a waker. A panic of it is reported.
#[inline]
pub fn wake_if_any(waker: Option<Waker>) {
    if let Some(waker) = waker {
        wake(waker);
    }
}

/// Drops a waker that is not needed. A panic of it is reported.
#[inline]
pub fn discard(waker: Waker) {
    contain(report, || drop(waker));
}

#[cold]
fn report(panic: Panic) {
    eprintln!("convoke: a waker {panic}; the others are woken nevertheless");
}
