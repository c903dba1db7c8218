//! The credentials of a peer, which `socket2` and the standard library do not report.
#![cfg(unix)]
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;

use convoke_io::driver::PeerCredentials;

use crate::poller::Handle;

/// Returns the credentials of the peer of a Unix stream.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn of_peer(socket: Handle<'_>) -> io::Result<PeerCredentials> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `socket` is open, since it is borrowed. `credentials` and `length` are valid for writes, and
    // `length` is the size of `credentials`, so the kernel writes nothing beyond it.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // A process outside of this one's namespace has no id here.
    let process = (credentials.pid > 0).then_some(credentials.pid);
    Ok(PeerCredentials::new(credentials.uid, credentials.gid, process))
}

/// Returns the credentials of the peer of a Unix stream.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "solaris", target_os = "illumos")))]
pub(crate) fn of_peer(socket: Handle<'_>) -> io::Result<PeerCredentials> {
    let (mut user, mut group) = (0, 0);
    // SAFETY: `socket` is open, since it is borrowed. `user` and `group` are valid for writes.
    if unsafe { libc::getpeereid(socket.as_raw_fd(), &raw mut user, &raw mut group) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(PeerCredentials::new(user, group, None))
}

/// Returns the credentials of the peer of a Unix stream.
#[cfg(any(target_os = "solaris", target_os = "illumos"))]
pub(crate) fn of_peer(_: Handle<'_>) -> io::Result<PeerCredentials> {
    Err(convoke_io::driver::unsupported("credentials of peers"))
}
