//! Expressions of two types.
use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        convoke::select! {
            () = convoke::task::forever() => 1,
            () = convoke::task::forever() => "one",
        }
    });
}
