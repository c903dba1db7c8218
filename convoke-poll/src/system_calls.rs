//! The system calls that neither the standard library nor `socket2` makes as the driver needs them, behind
//! safe functions: they take buffers as slices and descriptors that are borrowed, and return the kernel's
//! error.
//!
//! The calls of the hot path (`receive`, `send`, `epoll_wait`) do not go through the C library's functions of
//! the same name where that can be avoided: those are cancellation points of POSIX threads, and in a program
//! with threads they set and reset the cancellation type with two locked instructions each.

#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::ptr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use socket2::{SockAddr, SockRef};

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::{epoll_add, epoll_create, epoll_delete, epoll_wait, event_counter, increment};

/// Flag of [`receive`]: the bytes stay in the socket.
pub(crate) const PEEK: i32 = libc::MSG_PEEK;

/// Flags of every `send`. A peer that is gone is reported by an error, not by SIGPIPE. On Apple systems the
/// standard library sets SO_NOSIGPIPE on its sockets instead.
#[cfg(not(target_vendor = "apple"))]
const WITHOUT_SIGNAL: i32 = libc::MSG_NOSIGNAL;
#[cfg(target_vendor = "apple")]
const WITHOUT_SIGNAL: i32 = 0;

/// Receives into `buffer`. Returns the number of bytes.
#[inline]
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], flags: i32) -> io::Result<usize> {
    direct::receive(socket, buffer, flags)
}

/// Sends from `buffer`. Returns the number of bytes.
#[inline]
pub(crate) fn send(socket: BorrowedFd<'_>, buffer: &[u8]) -> io::Result<usize> {
    direct::send(socket, buffer, WITHOUT_SIGNAL)
}

/// Receives a datagram into `buffer`, which also stays in the socket. Returns its length and its sender.
pub(crate) fn peek_from(socket: &SockRef<'_>, buffer: &mut [u8]) -> io::Result<(usize, SockAddr)> {
    socket.peek_from(to_receive(buffer))
}

/// Returns the buffer in the form that the functions of `socket2` receive into.
fn to_receive(buffer: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the functions of `socket2` that receive let the kernel write bytes into the buffer and nothing else,
    // as they promise: every byte that was initialised stays so.
    unsafe { &mut *(ptr::from_mut(buffer) as *mut [MaybeUninit<u8>]) }
}

/// Returns true if the socket has space for bytes or datagrams now. Does not wait.
pub(crate) fn is_writable(socket: BorrowedFd<'_>) -> bool {
    let mut asked = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: the pointer is to one `pollfd` on this stack, and one is what the call is told.
    let ready = unsafe { libc::poll(&raw mut asked, 1, 0) };
    ready == 1
}

/// Returns true for the error of a connect that goes on in the background.
pub(crate) fn is_in_progress(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR))
}

/// Converts the result of a call that returns a length, or a negative number and `errno`.
#[inline]
fn length(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// The system calls by their numbers. Only on 64-bit systems: 32-bit Linux has them under several numbers, by
/// its age.
#[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64", not(miri)))]
mod direct {
    use core::ffi::c_void;
    use core::mem::MaybeUninit;
    use core::ptr;
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd};

    use super::length;

    /// Calls `recvfrom` without an address.
    #[inline]
    pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], flags: i32) -> io::Result<usize> {
        let (memory, size, none) = (buffer.as_mut_ptr(), buffer.len(), ptr::null_mut::<c_void>());
        // SAFETY: these are the six arguments of `recvfrom`, each as wide as a register or widened by the call's
        // convention. The kernel writes at most `size` bytes, into a slice that is ours alone during the call,
        // and no address.
        let received =
            unsafe { libc::syscall(libc::SYS_recvfrom, socket.as_raw_fd(), memory, size, flags, none, none) };
        length(received as isize)
    }

    /// Calls `sendto` without an address.
    #[inline]
    pub(super) fn send(socket: BorrowedFd<'_>, buffer: &[u8], flags: i32) -> io::Result<usize> {
        let (memory, size, none) = (buffer.as_ptr(), buffer.len(), ptr::null::<c_void>());
        // SAFETY: these are the six arguments of `sendto`, each as wide as a register or widened by the call's
        // convention. The kernel reads at most `size` bytes, from a slice that is borrowed during the call, and
        // no address.
        let sent = unsafe {
            libc::syscall(libc::SYS_sendto, socket.as_raw_fd(), memory, size, flags, none, 0_usize)
        };
        length(sent as isize)
    }

    /// Calls `epoll_pwait` without a signal mask, which is `epoll_wait`. Not every processor has a number for
    /// that one. Returns the number of events.
    #[inline]
    pub(super) fn epoll_wait(
        epoll: BorrowedFd<'_>,
        buffer: &mut [MaybeUninit<libc::epoll_event>],
        timeout: i32,
    ) -> io::Result<usize> {
        let most = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
        let (memory, none) = (buffer.as_mut_ptr(), ptr::null::<c_void>());
        // SAFETY: these are the six arguments of `epoll_pwait`, the last of which the kernel ignores without a
        // mask. It writes at most `most` events, into a slice that is ours alone during the call.
        let count = unsafe {
            libc::syscall(libc::SYS_epoll_pwait, epoll.as_raw_fd(), memory, most, timeout, none, 0_usize)
        };
        length(count as isize)
    }
}

/// The functions of `socket2` and of the C library. Miri knows these, and not the numbers of system calls.
#[cfg(not(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64", not(miri))))]
mod direct {
    use std::io;
    use std::os::fd::BorrowedFd;

    use socket2::SockRef;

    use super::to_receive;

    /// Calls `recv`.
    pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], flags: i32) -> io::Result<usize> {
        SockRef::from(&socket).recv_with_flags(to_receive(buffer), flags)
    }

    /// Calls `send`.
    pub(super) fn send(socket: BorrowedFd<'_>, buffer: &[u8], flags: i32) -> io::Result<usize> {
        SockRef::from(&socket).send_with_flags(buffer, flags)
    }

    /// Calls `epoll_wait`. Returns the number of events.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn epoll_wait(
        epoll: BorrowedFd<'_>,
        buffer: &mut [core::mem::MaybeUninit<libc::epoll_event>],
        timeout: i32,
    ) -> io::Result<usize> {
        use std::os::fd::AsRawFd;

        let most = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
        // SAFETY: the kernel writes at most `most` events, into a slice that is ours alone during the call.
        let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), buffer.as_mut_ptr().cast(), most, timeout) };
        super::length(count as isize)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use core::mem::MaybeUninit;
    use core::ptr;
    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

    use super::direct;

    /// Creates an epoll instance.
    pub(crate) fn epoll_create() -> io::Result<OwnedFd> {
        // SAFETY: the call takes no pointers.
        owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
    }

    /// Creates an eventfd of value zero that does not block.
    pub(crate) fn event_counter() -> io::Result<File> {
        // SAFETY: the call takes no pointers.
        owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).map(File::from)
    }

    /// Takes ownership of a descriptor that a call has returned, or returns the error.
    fn owned(descriptor: i32) -> io::Result<OwnedFd> {
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `epoll_create` and `event_counter`, the only callers, pass a descriptor that the kernel has
        // just created for them, and keep no copy.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// Adds one to an eventfd.
    pub(crate) fn increment(counter: &File) -> io::Result<()> {
        let mut counter = counter;
        counter.write(&1_u64.to_ne_bytes()).map(drop)
    }

    /// Registers a descriptor for `events`; they are reported with `key`.
    pub(crate) fn epoll_add(
        epoll: BorrowedFd<'_>,
        descriptor: BorrowedFd<'_>,
        events: i32,
        key: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: key };
        control(epoll, libc::EPOLL_CTL_ADD, descriptor, Some(&mut event))
    }

    /// Removes a descriptor.
    pub(crate) fn epoll_delete(epoll: BorrowedFd<'_>, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        control(epoll, libc::EPOLL_CTL_DEL, descriptor, None)
    }

    /// Calls `epoll_ctl`. Only a deletion needs no event.
    fn control(
        epoll: BorrowedFd<'_>,
        operation: i32,
        descriptor: BorrowedFd<'_>,
        event: Option<&mut libc::epoll_event>,
    ) -> io::Result<()> {
        let event = event.map_or(ptr::null_mut(), ptr::from_mut);
        // SAFETY: the kernel reads one event behind the pointer, which comes from a reference. To a null
        // pointer it answers with an error, unless it deletes.
        let result = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, descriptor.as_raw_fd(), event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits for at most `timeout` milliseconds, or without an end if that is negative. Returns the events.
    #[inline]
    pub(crate) fn epoll_wait<'a>(
        epoll: BorrowedFd<'_>,
        buffer: &'a mut [MaybeUninit<libc::epoll_event>],
        timeout: i32,
    ) -> io::Result<&'a [libc::epoll_event]> {
        let count = direct::epoll_wait(epoll, buffer, timeout)?;
        let events = buffer.as_ptr().cast::<libc::epoll_event>();
        // SAFETY: the kernel has initialised the first `count` events of the buffer, and reports no more than fit.
        Ok(unsafe { core::slice::from_raw_parts(events, count) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_are_peeked_and_received() {
        let (near, far) = UnixStream::pair().unwrap();
        assert_eq!(send(near.as_fd(), b"abc").unwrap(), 3);
        let mut buffer = [0; 8];
        assert_eq!(receive(far.as_fd(), &mut buffer, PEEK).unwrap(), 3);
        assert_eq!(receive(far.as_fd(), &mut buffer[..2], 0).unwrap(), 2);
        assert_eq!(&buffer[..3], b"abc");
    }

    #[test]
    fn the_error_of_the_kernel_is_returned() {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let nothing = receive(near.as_fd(), &mut [0; 8], 0).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        assert!(is_writable(near.as_fd()));
        drop(far);
        assert_eq!(send(near.as_fd(), b"lost").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
