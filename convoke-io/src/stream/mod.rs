//! Bytes in a row.
