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
    // SAFETY: the kernel writes at most `buffer.len()` bytes behind the pointer, and the slice is ours alone
    // during the call. It does not write an address: the pointers for that are null.
    let received =
        unsafe { direct::receive(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
    length(received)
}

/// Sends from `buffer`. Returns the number of bytes.
#[inline]
pub(crate) fn send(socket: BorrowedFd<'_>, buffer: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads at most `buffer.len()` bytes behind the pointer, and the slice is borrowed
    // during the call. It reads no address: the pointer to that is null.
    let sent =
        unsafe { direct::send(socket.as_raw_fd(), buffer.as_ptr().cast(), buffer.len(), WITHOUT_SIGNAL) };
    length(sent)
}

/// Receives a datagram into `buffer`, which also stays in the socket. Returns its length and its sender.
pub(crate) fn peek_from(socket: &SockRef<'_>, buffer: &mut [u8]) -> io::Result<(usize, SockAddr)> {
    // SAFETY: `peek_from` lets the kernel write bytes into the buffer and nothing else: every byte that was
    // initialised stays so, as `socket2` promises for its functions that receive.
    let buffer = unsafe { &mut *(ptr::from_mut(buffer) as *mut [MaybeUninit<u8>]) };
    socket.peek_from(buffer)
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
#[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
mod direct {
    use core::ffi::c_void;
    use core::ptr;

    /// Calls `recvfrom` without an address.
    ///
    /// # Safety
    /// `length` bytes behind `buffer` are writable, and nothing else uses them during the call.
    #[inline]
    pub(super) unsafe fn receive(socket: i32, buffer: *mut c_void, length: usize, flags: i32) -> isize {
        let none = ptr::null_mut::<c_void>();
        // SAFETY: these are the six arguments of `recvfrom`, each as wide as a register or widened by the
        // call's convention; `buffer` is writable by this function's contract.
        unsafe { libc::syscall(libc::SYS_recvfrom, socket, buffer, length, flags, none, none) as isize }
    }

    /// Calls `sendto` without an address.
    ///
    /// # Safety
    /// `length` bytes behind `buffer` are readable, and nothing writes to them during the call.
    #[inline]
    pub(super) unsafe fn send(socket: i32, buffer: *const c_void, length: usize, flags: i32) -> isize {
        let none = ptr::null::<c_void>();
        // SAFETY: these are the six arguments of `sendto`, each as wide as a register or widened by the
        // call's convention; `buffer` is readable by this function's contract.
        unsafe { libc::syscall(libc::SYS_sendto, socket, buffer, length, flags, none, 0_usize) as isize }
    }

    /// Calls `epoll_pwait` without a signal mask, which is `epoll_wait`. Not every processor has a number for
    /// that one.
    ///
    /// # Safety
    /// `length` events behind `buffer` are writable, and nothing else uses them during the call.
    #[inline]
    pub(super) unsafe fn epoll_wait(
        epoll: i32,
        buffer: *mut libc::epoll_event,
        length: i32,
        timeout: i32,
    ) -> isize {
        let none = ptr::null::<c_void>();
        // SAFETY: these are the six arguments of `epoll_pwait`, the last of which the kernel ignores without a
        // mask; `buffer` is writable by this function's contract.
        let count =
            unsafe { libc::syscall(libc::SYS_epoll_pwait, epoll, buffer, length, timeout, none, 0_usize) };
        count as isize
    }
}

/// The functions of the C library.
#[cfg(not(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64")))]
mod direct {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    use core::ffi::c_int;

    pub(super) use libc::{recv as receive, send};

    /// Calls `epoll_wait`.
    ///
    /// # Safety
    /// `length` events behind `buffer` are writable, and nothing else uses them during the call.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) unsafe fn epoll_wait(
        epoll: c_int,
        buffer: *mut libc::epoll_event,
        length: c_int,
        timeout: c_int,
    ) -> isize {
        // SAFETY: `buffer` is writable by this function's contract.
        unsafe { libc::epoll_wait(epoll, buffer, length, timeout) as isize }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use core::mem::MaybeUninit;
    use core::ptr;
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

    use super::{direct, length};

    /// Creates an epoll instance.
    pub(crate) fn epoll_create() -> io::Result<OwnedFd> {
        // SAFETY: the call takes no pointers.
        owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
    }

    /// Creates an eventfd of value zero that does not block.
    pub(crate) fn event_counter() -> io::Result<OwnedFd> {
        // SAFETY: the call takes no pointers.
        owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
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
    pub(crate) fn increment(counter: BorrowedFd<'_>) -> io::Result<()> {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the kernel reads `one.len()` bytes behind the pointer, which are on this stack.
        let written = unsafe { libc::write(counter.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        length(written).map(drop)
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
        let most = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
        let events = buffer.as_mut_ptr().cast::<libc::epoll_event>();
        // SAFETY: the kernel writes at most `most` events, which is at most the length of the buffer, and the
        // buffer is ours alone during the call.
        let count = unsafe { direct::epoll_wait(epoll.as_raw_fd(), events, most, timeout) };
        let count = length(count)?;
        // SAFETY: the kernel has initialised the first `count` events, and reports no more than `most`.
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
