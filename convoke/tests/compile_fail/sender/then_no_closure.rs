//! `then` is given a value and not a function.

use convoke_sender::prelude::*;

fn main() {
    let _ = just(1).then(5);
}
