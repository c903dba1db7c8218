//! Leases: reads into a buffer of the driver, so that a connection that waits owns no buffer. The buffer
//! returns to a cache when the lease is dropped.

use core::cell::RefCell;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// The size of a lease's buffer in bytes.
pub const LEASE_BYTES: usize = 16 * 1024;

/// The maximum number of free buffers that each thread caches.
pub const LEASES_KEPT: usize = 64;

thread_local! {
    static CACHE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that were read into a borrowed buffer. Dropping the lease returns the buffer to the cache of the
/// current thread.
pub struct Lease {
    /// `None` only while it is dropped.
    buffer: Option<Box<[u8]>>,
    filled: usize,
}

impl Lease {
    /// Takes an empty buffer, from the thread's cache if it has one. For drivers.
    pub fn take() -> Self {
        let cached = CACHE.try_with(|cache| cache.borrow_mut().pop()).ok().flatten();
        let buffer = cached.unwrap_or_else(|| vec![0; LEASE_BYTES].into_boxed_slice());
        Self { buffer: Some(buffer), filled: 0 }
    }

    /// Returns the whole buffer, to read into.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        self.buffer.as_deref_mut().unwrap_or_default()
    }

    /// Sets the number of bytes that were read.
    ///
    /// # Panics
    /// If `filled` is more than [`LEASE_BYTES`].
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
        // While the thread ends its cache is gone, and the buffer is freed.
        _ = CACHE.try_with(|cache| {
            let mut cache = cache.borrow_mut();
            if cache.len() < LEASES_KEPT {
                cache.push(buffer);
            }
        });
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({} bytes)", self.filled)
    }
}
