//! The word of another `select!`.
use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        convoke::select! {
            biased;
            () = convoke::task::forever() => {}
        }
    });
}
