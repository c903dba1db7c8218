//! A plain value where a sender is needed.

use convoke_sender::prelude::*;

fn wait(_: impl Sender) {}

fn main() {
    wait(5);
}
