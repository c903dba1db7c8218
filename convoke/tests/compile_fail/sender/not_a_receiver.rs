//! A plain value where a receiver is needed.

use convoke_sender::prelude::*;

fn main() {
    let _ = just(1).connect(5);
}
