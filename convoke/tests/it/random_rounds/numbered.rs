//! Bytes that show where in a stream they belong: for all tests that send bytes on random ways.

/// So many bytes of a stream from there on. The period is odd, so that pieces in a wrong order are seen to be.
pub(crate) fn numbered(from: u64, length: usize) -> Vec<u8> {
    (from..from + length as u64).map(|place| (place % 253) as u8).collect()
}
