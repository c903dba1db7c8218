//! Questions to the kernel about descriptors: how many the process may have, and if one is readable.

#![cfg(unix)]
#![allow(unsafe_code)]

use std::io;

/// Returns the current limit and the maximum.
pub(crate) fn descriptor_limit() -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit` behind the pointer, which is on this stack.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    limit
}

/// Sets the current limit, up to the maximum.
pub(crate) fn set_descriptor_limit(descriptors: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: descriptors, ..descriptor_limit() };
    // SAFETY: the kernel reads one `rlimit` behind the pointer, which is on this stack.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

/// Returns true if there is something to read from the descriptor now.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn is_readable(descriptor: std::os::fd::BorrowedFd<'_>) -> bool {
    use std::os::fd::AsRawFd;

    let mut asked = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one `pollfd` on this stack, and one is what the call is told.
    let ready = unsafe { libc::poll(&raw mut asked, 1, 0) };
    assert!(ready >= 0, "{}", io::Error::last_os_error());
    ready == 1
}
