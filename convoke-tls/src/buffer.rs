//! Buffers that are leased: an empty one has no memory, and returns it to a cache of its thread.

use core::cell::RefCell;

/// The size of a leased buffer. The largest record of TLS 1.2 fits: 5 bytes of header, 16 KiB, and 2 KiB of expansion. Records of
/// TLS 1.3 are smaller.
pub(crate) const BUFFER_BYTES: usize = 18 * 1024 + 5;

/// The maximum number of free buffers that each thread caches.
const BUFFERS_KEPT: usize = 16;

thread_local! {
    static CACHE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// The number of bytes up to which what waits for the rest of its record is moved to memory of its own size.
const SETTLED_BYTES: usize = 4096;

/// A queue of bytes: appended at the end, consumed at the start.
#[derive(Default)]
pub(crate) struct Buffer {
    /// Empty if nothing is leased. Smaller than a leased buffer if it was [settled](Buffer::settle).
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Removes `count` bytes from the start.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start, "more than there is");
        self.start += count;
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Moves as many bytes as fit to `target`, and returns how many.
    pub(crate) fn take_into(&mut self, target: &mut [u8]) -> usize {
        let count = target.len().min(self.end - self.start);
        target[..count].copy_from_slice(&self.filled()[..count]);
        self.consume(count);
        count
    }

    /// Returns the free space behind the end, at least `least` bytes. What is written there is added with [`fill`](Self::fill).
    pub(crate) fn spare(&mut self, least: usize) -> &mut [u8] {
        let length = self.end - self.start;
        if self.bytes.len() - self.end < least {
            if self.bytes.len() - length >= least {
                self.bytes.copy_within(self.start..self.end, 0);
            } else {
                let mut larger = lease(length + least);
                larger[..length].copy_from_slice(self.filled());
                give_back(core::mem::replace(&mut self.bytes, larger));
            }
            (self.start, self.end) = (0, length);
        }
        &mut self.bytes[self.end..]
    }

    /// Adds `count` bytes, which were written to [`spare`](Self::spare).
    pub(crate) fn fill(&mut self, count: usize) {
        debug_assert!(count <= self.bytes.len() - self.end, "more than fits");
        self.end += count;
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.spare(bytes.len())[..bytes.len()].copy_from_slice(bytes);
            self.fill(bytes.len());
        }
    }

    /// Returns the memory, if the buffer is empty.
    pub(crate) fn release_if_empty(&mut self) {
        if self.is_empty() && !self.bytes.is_empty() {
            give_back(core::mem::take(&mut self.bytes));
            (self.start, self.end) = (0, 0);
        }
    }
}

impl Buffer {
    /// Returns the leased memory before a wait. What is little is kept in memory of its own size: a peer that begins a record and
    /// falls silent costs no more than it has sent.
    pub(crate) fn settle(&mut self) {
        self.release_if_empty();
        let length = self.end - self.start;
        if length <= SETTLED_BYTES && self.bytes.len() >= BUFFER_BYTES {
            let own = Box::from(self.filled());
            give_back(core::mem::replace(&mut self.bytes, own));
            (self.start, self.end) = (0, length);
        }
    }

    /// Returns the size of the memory that the buffer has.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        give_back(core::mem::take(&mut self.bytes));
    }
}

/// Returns memory of at least `least` bytes. It is zeroed, or has bytes of an earlier record.
fn lease(least: usize) -> Box<[u8]> {
    if least <= BUFFER_BYTES {
        let cached = CACHE.try_with(|cache| cache.borrow_mut().pop()).ok().flatten();
        cached.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice())
    } else {
        vec![0; least.next_multiple_of(BUFFER_BYTES)].into_boxed_slice()
    }
}

fn give_back(bytes: Box<[u8]>) {
    if bytes.len() == BUFFER_BYTES {
        // A thread that ends has no cache any more.
        _ = CACHE.try_with(|cache| {
            let mut cache = cache.borrow_mut();
            if cache.len() < BUFFERS_KEPT {
                cache.push(bytes);
            }
        });
    }
}
