//! The closure of `let_value` returns a plain value.

use convoke_sender::prelude::*;

fn main() {
    let _ = just(1).let_value(|_| 5);
}
