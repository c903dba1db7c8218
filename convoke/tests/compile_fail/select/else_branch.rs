//! A branch that another `select!` has.
use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        convoke::select! {
            () = convoke::task::forever() => {}
            else => {}
        }
    });
}
