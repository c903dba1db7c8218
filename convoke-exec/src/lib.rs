//! Convoke, second floor.
