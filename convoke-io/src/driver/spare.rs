//! `SpareBuffer`: memory to read into that need not be initialised before.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::MaybeUninit;
use std::io;

use super::Source;

/// The part of a buffer that is not filled yet. A driver fills it from its beginning:
/// [`put`](SpareBuffer::put) copies bytes, and [`advance`](SpareBuffer::advance) is for a kernel that has
/// written to [`unfilled`](SpareBuffer::unfilled).
///
/// Rule 1: the first `filled` bytes of `memory` are initialised. Only `put` and `advance` change `filled`.
pub struct SpareBuffer<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    filled: usize,
}

impl<'a> SpareBuffer<'a> {
    /// Creates an empty buffer over this memory.
    pub fn new(memory: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { memory, filled: 0 }
    }

    /// Returns the number of bytes that were filled.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Returns the number of bytes that still fit.
    pub fn remaining(&self) -> usize {
        self.memory.len() - self.filled
    }

    /// Returns the memory that is not filled yet.
    pub fn unfilled(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.memory[self.filled..]
    }

    /// Copies as many bytes as fit. Returns their number.
    pub fn put(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.remaining());
        self.unfilled()[..count].write_copy_of_slice(&bytes[..count]);
        self.filled += count;
        count
    }

    /// Counts `bytes` more bytes as filled.
    ///
    /// # Panics
    /// If they do not fit.
    ///
    /// # Safety
    /// The first `bytes` bytes of [`unfilled`](SpareBuffer::unfilled) are initialised.
    #[track_caller]
    pub unsafe fn advance(&mut self, bytes: usize) {
        assert!(bytes <= self.remaining(), "{bytes} bytes do not fit into {}", self.remaining());
        self.filled += bytes;
    }
}

/// Reads the available bytes to the end of a vector, at most as many as fit into its spare capacity.
pub fn try_read_into(source: &dyn Source, vector: &mut Vec<u8>) -> io::Result<usize> {
    let mut spare = SpareBuffer::new(vector.spare_capacity_mut());
    source.try_read_spare(&mut spare)?;
    let filled = spare.filled();
    let length = vector.len() + filled;
    // SAFETY: `spare` began at the length of the vector and lay inside its capacity, and its first `filled`
    // bytes are initialised (rule 1).
    unsafe { vector.set_len(length) };
    Ok(filled)
}

impl fmt::Debug for SpareBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpareBuffer({} of {} bytes)", self.filled, self.memory.len())
    }
}
