//! The CPU time of child processes that have ended, as the kernel counts it.

#![allow(unsafe_code)]

use std::time::Duration;

/// Returns the user CPU time of all children of this process that have ended and were waited for, and of theirs.
#[cfg(unix)]
pub(super) fn of_children() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `rusage` behind the pointer, which is on this stack.
    let result = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    assert_eq!(result, 0, "the kernel reports the usage of children");
    // SAFETY: zeroes are a valid `rusage`, which consists of numbers, and the kernel has overwritten them.
    let time = unsafe { usage.assume_init() }.ru_utime;
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or_default())
}

/// Returns zero: there is no `getrusage` here.
#[cfg(not(unix))]
pub(super) fn of_children() -> Duration {
    Duration::ZERO
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_that_works_is_counted() {
        let before = of_children();
        let counts = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", counts]).status().unwrap().success());
        assert!(of_children() > before);
    }
}
