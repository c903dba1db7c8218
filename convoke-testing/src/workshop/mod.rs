//! Tools that the tests of Convoke's own crates share. They change without notice.

pub mod counting;
pub mod frames;
pub mod notes;
pub mod polled_by_hand;
