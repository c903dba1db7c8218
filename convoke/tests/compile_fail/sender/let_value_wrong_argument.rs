//! The closure of `let_value` takes another type than the value.

use convoke_sender::prelude::*;

fn main() {
    let _ = just(1).let_value(|text: String| just(text));
}
