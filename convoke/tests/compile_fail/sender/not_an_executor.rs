//! A plain value where an executor is needed.

use convoke_sender::prelude::*;

fn main() {
    let _ = schedule(&5);
}
