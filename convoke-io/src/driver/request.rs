//! Requests: the parts of an operation that a driver reads. A buffer in a request belongs to the driver while
//! the operation is in flight, and no longer. So a buffer cannot be moved out of its operation; the driver
//! borrows it from there.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;
use core::slice;

use super::Address;

/// An action on a source that may take time.
#[derive(Debug)]
#[non_exhaustive]
pub enum Request {
    /// Connect to this address. The result is zero.
    Connect(Box<Address>),
    /// Read into this buffer. The result is the number of bytes; zero is the end of the stream.
    Read(ReadBuffer),
    /// Write this buffer, or the beginning of it. The result is the number of bytes.
    Write(WriteBuffer),
}

impl Request {
    /// Returns the direction of the source that this request waits for.
    pub fn interest(&self) -> Interest {
        match self {
            Self::Read(_) => Interest::Read,
            Self::Connect(_) | Self::Write(_) => Interest::Write,
        }
    }

    /// Creates the request that works on borrowed buffers.
    ///
    /// # Safety
    /// The buffer does not move until the result is dropped, and nothing else accesses it until then; a buffer
    /// to write from may be read.
    pub(crate) unsafe fn of(borrowed: RequestMut<'_>) -> Self {
        match borrowed {
            RequestMut::Connect(to) => Self::Connect(Box::new(to.clone())),
            RequestMut::Read(buffer) => {
                Self::Read(ReadBuffer { start: NonNull::from(&mut *buffer).cast(), length: buffer.len() })
            }
            RequestMut::Write(buffer) => {
                Self::Write(WriteBuffer { start: NonNull::from(buffer).cast(), length: buffer.len() })
            }
        }
    }

    pub(super) fn as_mut(&mut self) -> RequestMut<'_> {
        match self {
            Self::Connect(to) => RequestMut::Connect(to),
            Self::Read(buffer) => RequestMut::Read(buffer.as_mut_slice()),
            Self::Write(buffer) => RequestMut::Write(buffer.as_slice()),
        }
    }
}

/// A [`Request`] with access to its buffers, borrowed from its operation. The borrow ends before the
/// operation is finished: after that the buffers belong to the owner of the operation.
#[derive(Debug)]
#[non_exhaustive]
pub enum RequestMut<'a> {
    /// Connect to this address.
    Connect(&'a Address),
    /// Read into this buffer.
    Read(&'a mut [u8]),
    /// Write this buffer, or its beginning.
    Write(&'a [u8]),
}

/// One of the two directions of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interest {
    /// Reading and accepting.
    Read,
    /// Writing and connecting.
    Write,
}

/// A buffer to read into. The holder of the operation has exclusive access to it, through
/// [`InFlight::request_mut`](super::InFlight::request_mut).
pub struct ReadBuffer {
    start: NonNull<u8>,
    length: usize,
}

/// A buffer to write from. The holder of the operation may read it; it does not change while the operation is
/// in flight.
pub struct WriteBuffer {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: `Request::of` requires exclusive access to the buffer, so this is like a `&mut [u8]`, which is
// `Send`.
unsafe impl Send for ReadBuffer {}
// SAFETY: a shared reference gives only the address and the length (`as_raw`).
unsafe impl Sync for ReadBuffer {}
// SAFETY: `Request::of` requires that the buffer does not change, so this is like a `&[u8]`, which is `Send`.
unsafe impl Send for WriteBuffer {}
// SAFETY: a shared reference gives only `&[u8]`, and `Request::of` requires that the buffer does not change.
unsafe impl Sync for WriteBuffer {}

impl ReadBuffer {
    /// Borrows the buffer. Not public: two read buffers behind `&mut` could be swapped between operations.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the transfer that has called `Request::of` leaves the buffer alone until the driver has released
        // the operation, and with it `self`, which is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// Returns the address and the length, for a kernel that writes on its own until the operation is
    /// finished.
    pub fn as_raw(&self) -> (NonNull<u8>, usize) {
        (self.start, self.length)
    }
}

impl WriteBuffer {
    /// Borrows the buffer.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the transfer that has called `Request::of` leaves the buffer alone until the driver has released
        // the operation, and with it `self`.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Returns the address and the length, for a kernel that reads on its own until the operation is
    /// finished.
    pub fn as_raw(&self) -> (NonNull<u8>, usize) {
        (self.start, self.length)
    }
}

impl fmt::Debug for ReadBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadBuffer({} bytes)", self.length)
    }
}

impl fmt::Debug for WriteBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteBuffer({} bytes)", self.length)
    }
}
