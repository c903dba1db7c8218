//! Bytes that show their position in a stream, for all tests with random traffic.

/// Returns `length` bytes of a stream, from position `from`. The period is odd, so that swapped pieces are
/// detected.
pub(crate) fn numbered(from: u64, length: usize) -> Vec<u8> {
    (from..from + length as u64).map(|place| (place % 253) as u8).collect()
}
