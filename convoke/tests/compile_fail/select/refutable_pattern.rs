//! A pattern that does not match every value.
use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        convoke::select! {
            Some(value) = async { Some(5) } => value,
            () = convoke::task::forever() => 0,
        }
    });
}
