//! A plain value where a sender is needed.

use convoke_core::prelude::*;

fn wait(_: impl Sender) {}

fn main() {
    wait(5);
}
