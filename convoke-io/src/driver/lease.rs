//! A lease: bytes that were read into a buffer which somebody else owns, and goes back when they have been looked at. A
//! connection that waits holds none.

use core::cell::RefCell;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// How large the buffer of a lease is.
pub const LEASE_BYTES: usize = 16 * 1024;

/// How many buffers a thread keeps for leases to come.
pub const LEASES_KEPT: usize = 64;

thread_local! {
    static KEPT: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that were read, in a buffer that is lent. Dropping it gives the buffer back, to whichever thread that is.
pub struct Lease {
    /// Taken when it is dropped.
    buffer: Option<Box<[u8]>>,
    filled: usize,
}

impl Lease {
    /// A buffer with nothing in it yet, for drivers.
    pub fn take() -> Self {
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
        let buffer = kept.unwrap_or_else(|| vec![0; LEASE_BYTES].into_boxed_slice());
        Self { buffer: Some(buffer), filled: 0 }
    }

    /// All of the buffer, to read into.
    pub fn room(&mut self) -> &mut [u8] {
        self.buffer.as_deref_mut().unwrap_or_default()
    }

    /// So much of it was read.
    ///
    /// # Panics
    /// If the buffer is not that large.
    #[track_caller]
    pub fn fill(&mut self, filled: usize) {
        assert!(filled <= LEASE_BYTES, "{filled} bytes do not fit into a lease");
        self.filled = filled;
    }
}

impl Deref for Lease {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.as_deref().map_or(&[], |buffer| &buffer[..self.filled])
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.as_deref_mut().map_or(&mut [], |buffer| &mut buffer[..self.filled])
    }
}

impl AsRef<[u8]> for Lease {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        // While the thread ends there is no place to keep it.
        _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < LEASES_KEPT {
                kept.push(buffer);
            }
        });
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({} bytes)", self.filled)
    }
}
