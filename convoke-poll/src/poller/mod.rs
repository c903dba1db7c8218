//! The kernel's interface for events: epoll on Linux, and the crate `polling` elsewhere. This file chooses
//! between the two, which have the same methods. With the feature `portable` Linux has both, for tests.
//!
//! `add`, `arm`, `delete` and `wake` may be called from any thread, also during a `wait`. Only one thread
//! calls `wait`.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod adaptive_spin;
#[cfg(all(any(target_os = "linux", target_os = "android"), feature = "portable"))]
mod either;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod epoll;
#[cfg(any(not(any(target_os = "linux", target_os = "android")), feature = "portable"))]
mod portable;

#[cfg(all(any(target_os = "linux", target_os = "android"), feature = "portable"))]
pub(crate) use either::Poller;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(feature = "portable")))]
pub(crate) use epoll::Poller;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use portable::Poller;

#[cfg(unix)]
pub(crate) use std::os::fd::BorrowedFd as Handle;
#[cfg(windows)]
pub(crate) use std::os::windows::io::BorrowedSocket as Handle;

/// The maximum number of events that one wait takes from the kernel. The rest is left for the next wait.
pub const EVENTS_AT_ONCE: usize = 1024;
