//! Peers side by side.
fn main() {}
