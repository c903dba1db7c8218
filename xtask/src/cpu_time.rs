//! The CPU time of child processes that have ended, as the kernel counts it. A busy machine changes it less than wall time.

#![allow(unsafe_code)]

use std::time::Duration;

/// The CPU time of all children of this process that have ended and were waited for, and of theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    /// In their own code.
    pub(crate) user: Duration,
    /// In the kernel, for them.
    pub(crate) system: Duration,
}

impl CpuTime {
    /// Returns the time up to now.
    #[cfg(unix)]
    pub(crate) fn of_children() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel writes one `rusage` behind the pointer, which is on this stack.
        let result = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
        assert_eq!(result, 0, "the kernel reports the usage of children");
        // SAFETY: zeroes are a valid `rusage`, which consists of numbers, and the kernel has overwritten them.
        let usage = unsafe { usage.assume_init() };
        Self { user: duration(usage.ru_utime), system: duration(usage.ru_stime) }
    }

    /// Returns zero: there is no `getrusage` here.
    #[cfg(not(unix))]
    pub(crate) fn of_children() -> Self {
        Self::default()
    }

    /// Returns the time since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    /// Returns both together.
    pub(crate) fn total(self) -> Duration {
        self.user + self.system
    }
}

#[cfg(unix)]
fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or_default())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_that_works_is_counted() {
        let before = CpuTime::of_children();
        let counts = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", counts]).status().unwrap().success());
        assert!(CpuTime::of_children().since(before).total() > Duration::ZERO);
    }
}
