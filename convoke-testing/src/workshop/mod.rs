//! What the tests of Convoke's own crates share. Not for others: it changes without notice.

pub mod counting;
pub mod frames;
pub mod notes;
pub mod polled_by_hand;
