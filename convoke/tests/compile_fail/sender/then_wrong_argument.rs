//! The closure of `then` takes another type than the value.

use convoke_sender::prelude::*;

fn main() {
    let _ = just(1).then(|text: String| text.len());
}
