//! A branch that is no future.
use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        convoke::select! {
            value = 5 => value,
            () = convoke::task::forever() => 0,
        }
    });
}
