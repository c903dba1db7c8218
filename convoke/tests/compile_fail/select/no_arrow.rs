//! A branch without an expression.
use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        convoke::select! {
            value = convoke::task::forever()
        }
    });
}
