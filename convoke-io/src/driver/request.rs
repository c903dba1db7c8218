//! What an operation asks for. Rooms and words are buffers that belong to the driver while the operation is in flight, and not
//! longer: so nothing in here can be taken out of an operation. Who wants the bytes borrows them from it.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;
use core::slice;

use super::Address;

/// What is to be done to a source.
#[derive(Debug)]
#[non_exhaustive]
pub enum Request {
    /// Connect to this address. The result is zero.
    Connect(Box<Address>),
    /// Read into this room. The result is how much; zero is the end.
    Read(Room),
    /// Write these words, or their beginning. The result is how much.
    Write(Words),
}

impl Request {
    /// Which direction of its source it waits for.
    pub fn interest(&self) -> Interest {
        match self {
            Self::Read(_) => Interest::Read,
            Self::Connect(_) | Self::Write(_) => Interest::Write,
        }
    }

    pub(super) fn as_mut(&mut self) -> RequestMut<'_> {
        match self {
            Self::Connect(to) => RequestMut::Connect(to),
            Self::Read(room) => RequestMut::Read(room.as_mut_slice()),
            Self::Write(words) => RequestMut::Write(words.as_slice()),
        }
    }
}

/// The same with the buffers, for as long as the operation is borrowed. A driver that could keep them would have them when the
/// operation is finished, and they are somebody else's.
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
    /// To read from it, or to accept.
    Read,
    /// To write to it, or to be connected.
    Write,
}

/// A buffer to read into. Whoever has the operation has the buffer to itself: [`InFlight::request_mut`](super::InFlight::request_mut).
pub struct Room {
    start: NonNull<u8>,
    length: usize,
}

/// A buffer to write from. Whoever has the operation may read it, and nobody changes it.
pub struct Words {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it is a buffer that is lent to it alone: `Room::new`.
unsafe impl Send for Room {}
// SAFETY: by shared reference it can only be asked where it is.
unsafe impl Sync for Room {}
// SAFETY: it is a buffer that nobody changes: `Words::new`.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Room {
    /// # Safety
    /// Nobody else touches the buffer, and it stays where it is, until this is gone.
    pub(crate) unsafe fn new(buffer: &mut [u8]) -> Self {
        Self { start: NonNull::from(&mut *buffer).cast(), length: buffer.len() }
    }

    /// The buffer. Not public: two rooms that can be reached by `&mut` can be exchanged.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `new`'s caller promised that it is ours.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// Its address and its length, for a kernel that writes by itself until the operation is finished.
    pub fn as_raw(&self) -> (NonNull<u8>, usize) {
        (self.start, self.length)
    }
}

impl Words {
    /// # Safety
    /// Nobody changes the buffer, and it stays where it is, until this is gone.
    pub(crate) unsafe fn new(buffer: &[u8]) -> Self {
        Self { start: NonNull::from(buffer).cast(), length: buffer.len() }
    }

    /// The buffer.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `new`'s caller promised that nobody changes it.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Its address and its length, for a kernel that reads by itself until the operation is finished.
    pub fn as_raw(&self) -> (NonNull<u8>, usize) {
        (self.start, self.length)
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Room({} bytes)", self.length)
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({} bytes)", self.length)
    }
}
